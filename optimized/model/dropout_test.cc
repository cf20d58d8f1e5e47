// SPDX-License-Identifier: Apache-2.0
// Masks against the draws of docs/semantics.md, one element at a time: with all positions and with fewer, whose
// elements keep the numbers that they have among all.
#include "optimized/model/dropout.h"

#include <gtest/gtest.h>

#include <vector>

#include "optimized/backend/cpu_backend.h"

namespace plumbline::optimized {
namespace {

constexpr uint64_t kSeed = 5;
constexpr int64_t kStep = 3, kLayer = 1, kFirstSample = 4, kSamples = 3;

contract::RealSpec Spec(double dropout) {
  return {
      .layers = 2, .width = 6, .heads = 3, .positions = 5, .hidden = 4, .vocab = 7, .dropout = dropout, .frozen = {}};
}

bool IsKept(contract::Site site, int64_t element) {
  return contract::Draw(kSeed, site, kStep, kLayer, element) >= static_cast<uint64_t>(0.25 * 4294967296.0);
}

// Of ones.
std::vector<float> Dropped(Dropout& drop, int64_t elems) {
  std::vector<float> values(elems, 1);
  drop.Draw({kStep, kFirstSample, {}, {}, {}});
  drop.Apply(std::span(values));
  return values;
}

TEST(Dropout, NumbersElementsOfTheStreamByAllPositionsHoweverManyAreComputed) {
  const auto backend = MakeCpuBackend();
  Arena arena(*backend);
  RealSizes sizes(Spec(0.25), kSeed, kSamples);
  Dropout drop(sizes, contract::Site::kDropoutMlpOut, kLayer, DroppedTensor::kStream, arena);
  for (const int64_t positions : {5, 3, 1, 4, 5}) {
    sizes.positions = positions;
    const std::vector<float> values = Dropped(drop, sizes.stream_elems());
    size_t at = 0;
    for (int64_t sample = 0; sample < kSamples; ++sample) {
      for (int64_t t = 0; t < positions; ++t) {
        for (int64_t c = 0; c < 6; ++c) {
          const bool is_kept = IsKept(contract::Site::kDropoutMlpOut, ((kFirstSample + sample) * 5 + t) * 6 + c);
          EXPECT_EQ(values[at++], is_kept ? 1 / 0.75f : 0.0f) << positions << " " << sample << " " << t << " " << c;
        }
      }
    }
  }
}

TEST(Dropout, NumbersElementsOfScoresByAllPositionsHoweverManyAreComputed) {
  const auto backend = MakeCpuBackend();
  Arena arena(*backend);
  RealSizes sizes(Spec(0.25), kSeed, kSamples);
  Dropout drop(sizes, contract::Site::kDropoutScores, kLayer, DroppedTensor::kScores, arena);
  for (const int64_t positions : {5, 3, 1, 4, 5}) {
    sizes.positions = positions;
    const std::vector<float> values = Dropped(drop, sizes.scores_elems());
    size_t at = 0;
    for (int64_t matrix = 0; matrix < kSamples * 3; ++matrix) {
      for (int64_t query = 0; query < positions; ++query) {
        for (int64_t key = 0; key < positions; ++key) {
          const int64_t element = ((kFirstSample * 3 + matrix) * 5 + query) * 5 + key;
          const bool is_kept = IsKept(contract::Site::kDropoutScores, element);
          EXPECT_EQ(values[at++], is_kept ? 1 / 0.75f : 0.0f) << positions << " " << matrix << " " << query;
        }
      }
    }
  }
}

TEST(Dropout, ARateOfZeroChangesNothing) {
  const auto backend = MakeCpuBackend();
  Arena arena(*backend);
  const RealSizes sizes(Spec(0), kSeed, kSamples);
  Dropout drop(sizes, contract::Site::kDropoutScores, kLayer, DroppedTensor::kScores, arena);
  EXPECT_FALSE(drop.is_active());
  EXPECT_EQ(Dropped(drop, 7), std::vector<float>(7, 1));
}

}  // namespace
}  // namespace plumbline::optimized
