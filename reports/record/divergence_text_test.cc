// SPDX-License-Identifier: Apache-2.0
#include "reports/record/divergence_text.h"

#include <gtest/gtest.h>

#include "reports/record/testing/example_divergence.h"

namespace plumbline::reports {
namespace {

TEST(DivergenceText, SaysWhereAndWhatFits) {
  EXPECT_EQ(DivergenceText(ExampleDivergence(), "  "),
            "  first divergence: step 2, gradient of layers.1.mlp.down, layer 1, ranks 0, 3, row 1 of 5\n"
            "  fits:    missing_rank (residual 0): a share is missing\n"
            "  nearest: other_factor (residual 0.25): by 0.7\n");
  EXPECT_EQ(DivergenceText(std::nullopt, "  "), "");
}

TEST(DivergenceText, SaysThatNoneFitsWithTheLimit) {
  DivergenceRecord none = ExampleDivergence();
  none.hypotheses.erase(none.hypotheses.begin());
  EXPECT_NE(DivergenceText(none, "").find("none of the hypotheses fits (limit of the residual 0.05)\n"),
            std::string::npos);
  none.undiagnosed = "the engine stopped";
  EXPECT_NE(DivergenceText(none, "").find("no hypothesis was tested: the engine stopped\n"), std::string::npos);
}

TEST(DivergenceText, NamesOneRankAndNoPlaceOfAnEngineThatStopped) {
  EXPECT_EQ(
      DivergenceText(DivergenceRecord{.step = 7, .quantity = "engine", .ranks = {5}, .undiagnosed = "it stopped"}, ""),
      "first divergence: step 7, rank 5\nno hypothesis was tested: it stopped\n");
}

}  // namespace
}  // namespace plumbline::reports
