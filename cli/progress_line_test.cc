// SPDX-License-Identifier: Apache-2.0
#include "cli/progress_line.h"

#include <gtest/gtest.h>

namespace plumbline::cli {
namespace {

TEST(ProgressText, SaysThatTheTimeLeftIsThatOfThePhase) {
  conformance::VerifyProgress progress{"truths and plain runs (2 of 3)", 3, 9, 4.0, "gpt2/a/b", std::nullopt};
  EXPECT_EQ(ProgressText(progress),
            "truths and plain runs (2 of 3): 3/9 runs, 4 s, about 8 s left of this phase: gpt2/a/b");
}

TEST(ProgressText, SaysOfShrinkingHowLongItMayTake) {
  conformance::VerifyProgress progress{"", 5, 5, 0, "gpt2/a/b", 12.4};
  EXPECT_EQ(ProgressText(progress), "making it smaller: 5 tried, at most 12 s left: gpt2/a/b");
}

}  // namespace
}  // namespace plumbline::cli
