// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/number_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>

namespace plumbline::conformance {
namespace {

using Limits = std::numeric_limits<double>;

TEST(NumberText, NamesWhatIsNotFiniteByItsClass) {
  // The sign of a NaN says nothing, and printf would show it.
  for (const auto& [value, name] :
       {std::pair(NAN, "NaN"), std::pair(-NAN, "NaN"), std::pair(INFINITY, "Inf"), std::pair(-INFINITY, "-Inf")}) {
    EXPECT_EQ(ShortText(value, 3), name);
    EXPECT_EQ(ExactText(value), name);
  }
}

TEST(NumberText, OfATraceDoesNotClaimAClass) {
  for (double value : {NAN, INFINITY, -INFINITY}) EXPECT_EQ(TraceText(value), "not finite");
  EXPECT_EQ(TraceText(0.1), "0.1");
}

TEST(NumberText, IsRoundedToAsManyDigitsAsAreAskedFor) {
  EXPECT_EQ(ShortText(1.0 / 3, 3), "0.333");
  EXPECT_EQ(ShortText(1.0 / 3, 4), "0.3333");
  EXPECT_EQ(ShortText(2.5, 4), "2.5");
  EXPECT_EQ(ShortText(-0x1p-30, 3), "-9.31e-10");
  EXPECT_EQ(ShortText(0, 3), "0");
}

TEST(NumberText, IsExactWhereItIsToReadBackAsTheSameNumber) {
  for (double value : {0.1, 1.0 / 3, 4.0, -7.25, 1 + Limits::epsilon(), Limits::max(), Limits::denorm_min()}) {
    EXPECT_EQ(std::strtod(ExactText(value).c_str(), nullptr), value);
  }
}

TEST(NumberText, HoldsTheLongestNumberOfSeventeenDigits) {
  EXPECT_EQ(ShortText(-Limits::max(), 17), "-1.7976931348623157e+308");
}

}  // namespace
}  // namespace plumbline::conformance
