// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/same_number.h"

#include <gtest/gtest.h>

#include <cmath>

#include "conformance/oracle/testing/odd_numbers.h"

namespace plumbline::conformance {
namespace {

TEST(SameNumber, IsEqualityOfBitsButForNaNs) {
  const double numbers[] = {0.0, -0.0, kSubnormal, -kSubnormal, 5e-324, 1.0, std::nextafter(1.0, 2), kInf, -kInf, kNaN};
  for (const double& a : numbers) {
    for (const double& b : numbers) EXPECT_EQ(SameNumber(a, b), &a == &b) << a << " and " << b;
  }
  EXPECT_TRUE(SameNumber(kNaN, kOtherNaN));
  EXPECT_TRUE(SameNumber(kOtherNaN, kNaN));
}

}  // namespace
}  // namespace plumbline::conformance
