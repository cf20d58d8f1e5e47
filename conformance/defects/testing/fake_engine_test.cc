// SPDX-License-Identifier: Apache-2.0
//
// What the fake engine does without a defect; linked once with the plain engine and once with its twin.

#include "conformance/defects/testing/fake_engine.h"

#include <gtest/gtest.h>

#include "conformance/defects/testing/fake_sum.h"

namespace plumbline::defects::testing {
namespace {

TEST(FakeEngine, ComputesWithoutDefects) {
  EXPECT_EQ(SumTo(4), 10);
  EXPECT_EQ(SumTo(0), 0);
  EXPECT_EQ(FakeStep(4, 1), 21);
  EXPECT_EQ(FakeStep(4, 0), 20 - 1000);
}

TEST(FakeEngine, SaysTheFileAndLineOfTheProductSource) {
  EXPECT_STREQ(FileOfSum(), "conformance/defects/testing/fake_sum.cc");
  EXPECT_EQ(LineOfSum(), 18);
}

}  // namespace
}  // namespace plumbline::defects::testing
