// SPDX-License-Identifier: Apache-2.0
// Against a count by hand. Where the calls stand among others: call_sequence_test.cc.
#include "conformance/oracle/norm_reductions.h"

#include <gtest/gtest.h>

namespace plumbline::conformance {
namespace {

using contract::AdaptiveClipping;
using Bytes = std::vector<int64_t>;

// Rows: embed 11, pos 5. Columns: qkv 12, out 4, up 3, down 4. Vectors: 4 of norms, 2 of the last norm, 4 biases.
contract::Gpt2Spec Model() {
  contract::Gpt2Spec model;
  model.layers = 1;
  model.width = 4;
  model.heads = 2;
  model.positions = 5;
  model.hidden = 3;
  model.vocab = 11;
  return model;
}
constexpr int64_t kUnits = 11 + 5 + 12 + 4 + 3 + 4 + 4 + 2 + 4;
constexpr int64_t kTensors = 2 + 4 + 4 + 4 + 2;

contract::RunConfig Config(int64_t stage, int64_t ranks) {
  contract::RunConfig config;
  config.optimizer = contract::OptimizerKind::kAdamW;
  config.zero_stage = stage;
  config.data_degree = ranks;
  return config;
}

TEST(NormReductions, AreOneForTheWholeGradientWhereItIsSharded) {
  EXPECT_EQ(NormReductions(Model(), Config(0, 2)), Bytes{});
  EXPECT_EQ(NormReductions(Model(), Config(1, 1)), Bytes{});
  for (int64_t stage : {1, 2, 3}) EXPECT_EQ(NormReductions(Model(), Config(stage, 2)), Bytes{168});
}

TEST(NormReductions, HaveTwoSumsForEachUnitAndEachTensor) {
  contract::RunConfig config = Config(2, 4);
  config.adaptive_clipping.kind = AdaptiveClipping::Kind::kUnit;
  EXPECT_EQ(NormReductions(Model(), config), (Bytes{168, 336 * kUnits}));
  config.optimizer = contract::OptimizerKind::kLamb;
  EXPECT_EQ(NormReductions(Model(), config), (Bytes{168, 336 * kUnits, 336 * kTensors}));
  config.adaptive_clipping.kind = AdaptiveClipping::Kind::kHistory;
  EXPECT_EQ(NormReductions(Model(), config), (Bytes{168, 336 * kTensors}));
  config.zero_stage = 0;
  EXPECT_EQ(NormReductions(Model(), config), Bytes{});
}

TEST(NormReductions, PassOverWhatIsFrozenAndTheUnitsOfWhatIsExempt) {
  contract::Gpt2Spec model = Model();
  model.frozen = {"embed.weight"};
  contract::RunConfig config = Config(3, 2);
  config.optimizer = contract::OptimizerKind::kLamb;
  config.adaptive_clipping.kind = AdaptiveClipping::Kind::kUnit;
  config.groups = {{"*.attn.*", std::nullopt, std::nullopt, std::nullopt, false}};
  EXPECT_EQ(NormReductions(model, config), (Bytes{168, 336 * (kUnits - 11 - 12 - 4 - 2), 336 * (kTensors - 1)}));
}

}  // namespace
}  // namespace plumbline::conformance
