// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/layer_stages.h"

#include <gtest/gtest.h>

#include <string>

namespace plumbline::contract {
namespace {

Gpt2Spec SmallModel() {
  Gpt2Spec spec;
  spec.layers = 12;  // `layers.1.` begins the name of layer 1 only
  spec.width = spec.heads = spec.positions = spec.hidden = 2;
  spec.vocab = 3;
  spec.tied_head = false;
  spec.unused = true;
  return spec;
}

TEST(LayerStages, GiveEachParameterTheStageOfItsLayerAndAllOthersThatOfAll) {
  RunConfig config;
  config.zero_stage = 1;
  config.layer_stages = {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3};
  for (const ParameterSpec& parameter : Parameters(SmallModel())) {
    const bool is_of_layer = parameter.name.starts_with("layers.");
    const int64_t layer = is_of_layer ? std::stoll(parameter.name.substr(7)) : -1;
    EXPECT_EQ(parameter.layer, layer) << parameter.name;
    EXPECT_EQ(StageOf(config, parameter), is_of_layer ? layer % 4 : 1) << parameter.name;
  }
}

TEST(LayerStages, LeaveTheStageOfAllWhereThereAreNone) {
  RunConfig config;
  config.zero_stage = 2;
  for (const ParameterSpec& parameter : Parameters(SmallModel())) EXPECT_EQ(StageOf(config, parameter), 2);
  EXPECT_EQ(HighestStage(config, SmallModel()), 2);
}

TEST(LayerStages, HighestIsThatOfWhatIsTrained) {
  Gpt2Spec spec = SmallModel();
  spec.layers = 2;
  RunConfig config;
  config.layer_stages = {0, 3};
  EXPECT_EQ(HighestStage(config, spec), 3);
  for (const ParameterSpec& parameter : Parameters(spec)) {
    if (parameter.layer == 1) spec.frozen.push_back(parameter.name);
  }
  EXPECT_EQ(HighestStage(config, spec), 0);
}

}  // namespace
}  // namespace plumbline::contract
