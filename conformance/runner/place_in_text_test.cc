// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/place_in_text.h"

#include <gtest/gtest.h>

namespace plumbline::conformance {
namespace {

contract::ModelSpec Model() {
  contract::Gpt2Spec model;
  model.layers = 2;
  model.width = model.heads = model.positions = model.hidden = model.vocab = 2;
  return model;
}

TEST(PlaceInText, ReadsWhatIsThere) {
  const auto ledger = PlaceInText("step 3, rank 12: all_reduce 13 x, 21904 bytes", Model());
  EXPECT_EQ(ledger.step, 3);
  EXPECT_EQ(ledger.ranks, std::vector<int64_t>{12});
  EXPECT_EQ(ledger.tensor, "");
  const auto trace = PlaceInText("step 0: weight of layers.1.norm2.bias is not whole on rank 1", Model());
  EXPECT_EQ(trace.tensor, "layers.1.norm2.bias");
  EXPECT_EQ(trace.layer, 1);
  EXPECT_FALSE(trace.undiagnosed.empty());
}

TEST(PlaceInText, InventsNothing) {
  const auto none = PlaceInText("the engine was killed", Model());
  EXPECT_EQ(none.step, -1);
  EXPECT_TRUE(none.ranks.empty());
  EXPECT_EQ(none.tensor, "");
  EXPECT_EQ(none.layer, -1);
  EXPECT_EQ(PlaceInText("step x, rank y", Model()).step, -1);
  EXPECT_EQ(PlaceInText("step -5, rank -7", Model()).step, -1);
  EXPECT_TRUE(PlaceInText("step -5, rank -7", Model()).ranks.empty());
  // "norm.weight" is a parameter, and part of a longer word here.
  EXPECT_EQ(PlaceInText("of layers.7.norm.weight", Model()).tensor, "");
}

}  // namespace
}  // namespace plumbline::conformance
