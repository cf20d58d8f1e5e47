// SPDX-License-Identifier: Apache-2.0
// The initial weights of family gpt2 against docs/semantics.md, "Initial weights", whose rules are written here a
// second time.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "conformance/contract/batch_source.h"
#include "conformance/contract/random_stream.h"

namespace plumbline::contract {
namespace {

Gpt2Spec Model() {
  Gpt2Spec model;
  model.layers = 3;
  model.width = 14;
  model.heads = 2;
  model.positions = 7;
  model.hidden = 9;
  model.vocab = 11;
  model.tied_head = false;
  model.unused = true;
  model.frozen = {"pos.weight"};
  return model;
}

double ExpectedValue(const Gpt2Spec& model, uint64_t seed, int64_t tensor_id, const std::string& name, int64_t index) {
  const double r1 = Draw(seed, static_cast<Site>(20), 0, tensor_id, index);
  const double r2 = Draw(seed, static_cast<Site>(21), 0, tensor_id, index);
  const double z = std::sqrt(-2 * std::log((r1 + 1) * 0x1p-32)) * std::cos(2 * std::numbers::pi * (r2 * 0x1p-32));
  if (name.ends_with("bias")) return 0.02 * z;
  if (name.ends_with("norm1.weight") || name.ends_with("norm2.weight") || name == "norm.weight") return 1 + 0.1 * z;
  if (name.ends_with("attn.out.weight") || name.ends_with("mlp.down.weight")) {
    return model.initializer_range / std::sqrt(2.0 * 3) * z;
  }
  return model.initializer_range * z;
}

TEST(MakeInitialRealState, DrawsMastersAsTheDocumentSays) {
  for (double range : {0.02, 0.1}) {
    Gpt2Spec model = Model();
    model.initializer_range = range;
    const std::vector<ParameterSpec> parameters = Parameters(model);
    const std::vector<RealParameterState> state = MakeInitialRealState(model, RunConfig{}, 5);
    ASSERT_EQ(state.size(), parameters.size());
    for (size_t p = 0; p < state.size(); ++p) {
      ASSERT_EQ(static_cast<int64_t>(state[p].master.size()), parameters[p].numel());
      for (size_t i = 0; i < state[p].master.size(); ++i) {
        EXPECT_EQ(state[p].master[i], static_cast<float>(ExpectedValue(model, 5, static_cast<int64_t>(p),
                                                                       parameters[p].name, static_cast<int64_t>(i))))
            << parameters[p].name << " " << i;
      }
    }
  }
}

TEST(MakeInitialRealState, GivesZeroMomentsToWhatIsTrainedAndNoneToWhatIsFrozen) {
  const Gpt2Spec model = Model();
  RunConfig config;
  config.optimizer = OptimizerKind::kAdamW;
  const std::vector<ParameterSpec> parameters = Parameters(model);
  const std::vector<RealParameterState> state = MakeInitialRealState(model, config, 5);
  for (size_t p = 0; p < state.size(); ++p) {
    const std::vector<float> zeros(parameters[p].frozen ? 0 : state[p].master.size(), 0.0f);
    EXPECT_EQ(state[p].moment, zeros);
    EXPECT_EQ(state[p].second_moment, zeros);
  }
}

}  // namespace
}  // namespace plumbline::contract
