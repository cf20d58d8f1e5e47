// SPDX-License-Identifier: Apache-2.0
#include "reports/record/divergence_text.h"

#include <gtest/gtest.h>

namespace plumbline::reports {
namespace {

DivergenceRecord Example() {
  return {.step = 2,
          .quantity = "gradient",
          .tensor = "layers.1.mlp.down",
          .layer = 1,
          .ranks = {0, 3},
          .region = "row 1 of 5",
          .hypotheses = {{.name = "missing_rank", .says = "a share is missing", .residual = 0, .fits = true},
                         {.name = "other_factor", .says = "by 0.7", .residual = 0.25, .fits = false}},
          .residual_limit = 0.05,
          .undiagnosed = ""};
}

TEST(DivergenceText, SaysWhereAndWhatFits) {
  EXPECT_EQ(DivergenceText(Example(), "  "),
            "  first divergence: step 2, gradient of layers.1.mlp.down, layer 1, ranks 0, 3, row 1 of 5\n"
            "  fits:    missing_rank (residual 0): a share is missing\n"
            "  nearest: other_factor (residual 0.25): by 0.7\n");
  EXPECT_EQ(DivergenceText(std::nullopt, "  "), "");
}

TEST(DivergenceText, SaysThatNoneFitsWithTheLimit) {
  DivergenceRecord none = Example();
  none.hypotheses.erase(none.hypotheses.begin());
  EXPECT_NE(DivergenceText(none, "").find("none of the hypotheses fits (residual above 0.05)\n"), std::string::npos);
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
