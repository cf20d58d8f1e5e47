// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/gradient_region.h"

#include <gtest/gtest.h>

#include "conformance/oracle/region_error.h"

namespace plumbline::conformance {
namespace {

contract::Gpt2Spec Model() {
  contract::Gpt2Spec model;
  model.layers = 2;
  model.width = 5;
  model.heads = 1;
  model.positions = 3;
  model.hidden = 7;
  model.vocab = 11;
  model.tied_head = false;
  model.frozen = {"pos.weight"};
  return model;
}

TEST(GradientRegions, CoverEachTrainedElementOnceAndNoFrozenOne) {
  const auto parameters = contract::Parameters(Model());
  std::vector<std::vector<int>> seen;
  for (const auto& parameter : parameters) seen.emplace_back(parameter.numel(), 0);
  for (const GradientRegion& region : GradientRegions(Model())) {
    int64_t count = 0;
    ForEachElement(region, [&](size_t i) { ++seen[region.tensor][i], ++count; });
    EXPECT_EQ(count, region.numel());
    EXPECT_EQ(region.is_vector, parameters[region.tensor].is_vector);
  }
  for (const auto& parameter : parameters) {
    for (int times : seen[static_cast<size_t>(parameter.tensor_id)]) EXPECT_EQ(times, parameter.frozen ? 0 : 1);
  }
}

TEST(GradientRegions, SplitQkvIntoColumnsOfItsThreeParts) {
  std::vector<std::string> names;
  for (const GradientRegion& region : GradientRegions(Model())) {
    if (region.name.find("layers.1.attn.qkv.weight") == 0) names.push_back(region.name);
    if (region.name != "layers.1.attn.qkv.weight (k part)") continue;
    std::vector<size_t> first;
    ForEachElement(region, [&](size_t i) {
      if (first.size() < 6) first.push_back(i);
    });
    EXPECT_EQ(first, (std::vector<size_t>{5, 6, 7, 8, 9, 20}));
  }
  EXPECT_EQ(names, (std::vector<std::string>{"layers.1.attn.qkv.weight (q part)", "layers.1.attn.qkv.weight (k part)",
                                             "layers.1.attn.qkv.weight (v part)"}));
}

TEST(MeasureError, GivesNormSlopeAndTailByHand) {
  const GradientRegion region{0, "", 1, 4, 0, 4, true};
  const std::vector<double> truth = {3, 0, 4, 0};
  const RegionTruth measured = MeasureTruth(region, truth, 5);
  EXPECT_FALSE(measured.null);
  EXPECT_DOUBLE_EQ(measured.scale, 5);
  EXPECT_DOUBLE_EQ(measured.largest, 4);
  EXPECT_DOUBLE_EQ(measured.participation, 625.0 / (81 + 256));
  const RegionError error = MeasureError(region, measured, truth, std::vector<double>{3, 3, 0, 0});
  EXPECT_DOUBLE_EQ(error.norm, 1);              // 5 / 5
  EXPECT_DOUBLE_EQ(error.slope, -16.0 / 25);    // <(0, 3, -4, 0), t> / <t, t>
  EXPECT_DOUBLE_EQ(error.tail, 4 / (5 / 2.0));  // against the root mean square
  EXPECT_DOUBLE_EQ(MeasureError(region, measured, truth, std::vector<double>{1.5, 0, 2, 0}).slope, -0.5);
}

TEST(MeasureError, MeasuresANullRegionByTheWholeGradient) {
  const GradientRegion region{0, "", 1, 4, 0, 4, true};
  for (double noise : {0.0, 1e-16}) {
    const std::vector<double> truth(4, noise);
    const RegionTruth measured = MeasureTruth(region, truth, 2);
    EXPECT_TRUE(measured.null);
    EXPECT_EQ(measured.scale, 2);
    const RegionError error = MeasureError(region, measured, truth, std::vector<double>(4, noise + 1));
    EXPECT_DOUBLE_EQ(error.norm, 1);
    EXPECT_EQ(error.slope, 0);
  }
}

TEST(WholeError, IsThatOfAllRegionsAsOne) {
  const std::vector<GradientRegion> regions = {{0, "", 1, 2, 0, 2, true}, {1, "", 1, 3, 0, 3, true}};
  const GradientRegion joined{0, "", 1, 5, 0, 5, true};
  const std::vector<std::vector<double>> truth = {{1, -2}, {0.5, 3, 7}};
  const std::vector<std::vector<double>> engine = {{1.5, -2}, {0, 3, 6}};
  const std::vector<double> whole_truth = {1, -2, 0.5, 3, 7};
  const std::vector<double> whole_engine = {1.5, -2, 0, 3, 6};
  std::vector<RegionTruth> measured;
  std::vector<RegionError> errors;
  for (size_t r = 0; r < 2; ++r) {
    measured.push_back(MeasureTruth(regions[r], truth[r], 8));
    errors.push_back(MeasureError(regions[r], measured[r], truth[r], engine[r]));
  }
  const RegionTruth expected = MeasureTruth(joined, whole_truth, 8);
  const RegionTruth whole = WholeTruth(measured);
  EXPECT_NEAR(whole.scale, expected.scale, 1e-14);
  EXPECT_NEAR(whole.participation, expected.participation, 1e-14);
  const RegionError by_hand = MeasureError(joined, expected, whole_truth, whole_engine);
  const RegionError error = WholeError(regions, measured, errors);
  EXPECT_NEAR(error.norm, by_hand.norm, 1e-15);
  EXPECT_NEAR(error.slope, by_hand.slope, 1e-15);
  EXPECT_NEAR(error.tail, by_hand.tail, 1e-14);
}

}  // namespace
}  // namespace plumbline::conformance
