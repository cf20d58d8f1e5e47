// SPDX-License-Identifier: Apache-2.0
// First match wins, defaults fill what an entry leaves out, clipping on both sides.
#include "optimized/optimizer/parameter_groups.h"

#include <gtest/gtest.h>

namespace plumbline::optimized {
namespace {

contract::RunConfig Config() {
  contract::RunConfig config;
  config.params.lr = 0.1;
  config.params.weight_decay = 0.01;
  config.params.beta1 = 0.7;
  config.params.beta2 = 0.8;
  config.groups = {{"*.bias", std::nullopt, 0.0},
                   {"*norm*", 0.3, std::nullopt, contract::BetaPair{0.5, 0.6}},
                   {"layers.0.*", 0.2, 0.5}};
  return config;
}

TEST(ParameterGroups, TheFirstEntryThatFitsCountsAndDefaultsFillTheRest) {
  const struct {
    const char* name;
    double lr, weight_decay;
    contract::BetaPair betas;
  } cases[] = {{"embed.weight", 0.1, 0.01, {0.7, 0.8}},           {"layers.0.norm1.bias", 0.1, 0, {0.7, 0.8}},
               {"layers.0.norm1.weight", 0.3, 0.01, {0.5, 0.6}},  {"layers.0.mlp.up.weight", 0.2, 0.5, {0.7, 0.8}},
               {"layers.1.mlp.up.weight", 0.1, 0.01, {0.7, 0.8}}, {"norm.weight", 0.3, 0.01, {0.5, 0.6}}};
  for (const auto& [name, lr, weight_decay, betas] : cases) {
    const GroupOptions options = OptionsOf(Config(), name);
    EXPECT_EQ(options.lr, lr) << name;
    EXPECT_EQ(options.weight_decay, weight_decay) << name;
    EXPECT_EQ(options.betas, betas) << name;
  }
}

TEST(ParameterGroups, OnlyTheFirstEntryThatFitsSaysWhetherAParameterIsClipped) {
  contract::RunConfig config = Config();
  config.groups[1].clip = false;
  EXPECT_FALSE(OptionsOf(config, "layers.0.norm1.weight").clips);
  EXPECT_TRUE(OptionsOf(config, "layers.0.norm1.bias").clips);
  EXPECT_TRUE(OptionsOf(config, "layers.0.mlp.up.weight").clips);
  EXPECT_TRUE(OptionsOf(config, "embed.weight").clips);
}

TEST(ParameterGroups, ClippingScalesOnlyNormsAboveTheThreshold) {
  EXPECT_EQ(ClipCoefficient(0, 100), 1);
  EXPECT_EQ(ClipCoefficient(1, 0.5), 1);
  EXPECT_EQ(ClipCoefficient(1, 0), 1);
  EXPECT_EQ(ClipCoefficient(1, 4), 1 / (4 + 1e-6));
  EXPECT_LT(ClipCoefficient(1, 1), 1);  // the epsilon counts
}

}  // namespace
}  // namespace plumbline::optimized
