// SPDX-License-Identifier: Apache-2.0
#include "conformance/diagnosis/region.h"

#include <gtest/gtest.h>

#include <cmath>

namespace plumbline::conformance {
namespace {

std::string Region(const contract::ParameterSpec& parameter, const std::vector<size_t>& differing) {
  const Values truth(static_cast<size_t>(parameter.numel()), 1.0);
  Values candidate = truth;
  for (size_t i : differing) candidate[i] = 2;
  return DescribeRegion(parameter, candidate, truth, 0);
}

const contract::ParameterSpec kMatrix = {"layers.1.mlp.up", 5, 7, 0};
const contract::ParameterSpec kVector = {"norm.bias", 1, 11, 0, true};
const contract::ParameterSpec kQkv = {"layers.0.attn.qkv.weight", 2, 9, 0};

TEST(Region, IsNamedByElementsRowsOrColumns) {
  EXPECT_EQ(Region(kMatrix, {}), "no element");
  EXPECT_EQ(Region(kMatrix, {34}), "element 34 of 35");
  EXPECT_EQ(Region(kMatrix, {7, 8, 9, 10, 11, 12, 13}), "row 1 of 5");
  EXPECT_EQ(Region(kMatrix, {2, 9, 16, 23, 30}), "column 2 of 7");
  EXPECT_EQ(Region(kMatrix, {3, 4}), "elements 3 to 4 of 35");
  EXPECT_EQ(Region(kMatrix, {3, 20, 34}), "3 of 35 elements, from 3 to 34");
  EXPECT_EQ(Region(kVector, {10}), "element 10 of 11");
  EXPECT_EQ(Region(kVector, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}), "all 11 elements");
  EXPECT_EQ(Region(kQkv, {3, 4, 5, 12, 13, 14}), "columns 3 to 5 of 9, in the k part");
}

TEST(Region, NotANumberDiffersWhateverTheTolerance) {
  EXPECT_EQ(DescribeRegion(kVector, Values(11, NAN), Values(11, 0), 1e9), "all 11 elements");
}

TEST(Region, LayerIsReadFromTheName) {
  EXPECT_EQ(LayerOf("layers.1.mlp.down"), 1);
  EXPECT_EQ(LayerOf("layers.12.norm1.bias"), 12);
  EXPECT_EQ(LayerOf("embed.weight"), -1);
  EXPECT_EQ(LayerOf("layers."), -1);
  EXPECT_EQ(LayerOf(""), -1);
}

TEST(Region, ToleranceIsRoundingAndNeverAllOfTheDifference) {
  const Values truth(100, 0);
  Values candidate(100, 0);
  candidate[3] = 1;
  EXPECT_EQ(DifferenceTolerance(candidate, truth, 0), 0);
  EXPECT_DOUBLE_EQ(DifferenceTolerance(candidate, truth, 0.1), 0.04);
  EXPECT_DOUBLE_EQ(DifferenceTolerance(candidate, truth, 1e-9), 1e-3);
  EXPECT_DOUBLE_EQ(DifferenceTolerance(candidate, truth, 100), 0.5);
}

}  // namespace
}  // namespace plumbline::conformance
