// SPDX-License-Identifier: Apache-2.0
// Batches whose samples are told apart by their tokens: what moves where, what stays, and when nothing has moved.
#include "conformance/runner/metamorphic_batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "conformance/contract/digest.h"

namespace plumbline::conformance {
namespace {

using contract::Batches;
using contract::RunConfig;

struct Layout {
  int64_t ranks, accumulation, micro_batch;
};
constexpr Layout kLayouts[] = {{1, 1, 1}, {1, 1, 5}, {1, 3, 2}, {2, 1, 1}, {2, 3, 1}, {3, 2, 2}, {3, 1, 5}, {4, 3, 7}};

RunConfig ConfigOf(const Layout& layout) {
  RunConfig config;
  config.data_degree = layout.ranks;
  config.accumulation_steps = layout.accumulation;
  config.micro_batch_size = layout.micro_batch;
  config.train_batch_size = layout.ranks * layout.accumulation * layout.micro_batch;
  return config;
}

int64_t RankOf(int64_t sample, const RunConfig& config) {
  return sample / config.micro_batch_size % config.data_degree;
}

// Every sample's tokens are its number; labels and weights follow it. 16 weighted tokens of weight N or 5N.
Batches Example(int64_t batch, int64_t steps = 3, int64_t first_step = 0) {
  constexpr int64_t kPositions = 5;
  Batches batches{steps, batch, kPositions, {}, {}, {}, first_step};
  for (int64_t step = 0; step < steps; ++step) {
    for (int64_t sample = 0; sample < batch; ++sample) {
      for (int64_t t = 0; t < kPositions; ++t) {
        batches.tokens.push_back(static_cast<int32_t>(step * 1000 + sample));
        batches.labels.push_back(static_cast<int32_t>(sample * 10 + t));
        batches.loss_weights.push_back(static_cast<int32_t>((sample + t) % 2));
      }
    }
  }
  return batches;
}

std::vector<int32_t> SampleAt(const Batches& batches, int64_t step, int64_t sample) {
  std::vector<int32_t> content;
  for (auto array : {&Batches::tokens, &Batches::labels, &Batches::loss_weights}) {
    for (int64_t t = 0; t < batches.positions; ++t) {
      content.push_back((batches.*array)[static_cast<size_t>(batches.Index(step, sample, t))]);
    }
  }
  return content;
}

std::multiset<std::vector<int32_t>> SamplesOfRank(const Batches& batches, int64_t step, int64_t rank,
                                                  const RunConfig& config) {
  std::multiset<std::vector<int32_t>> samples;
  for (int64_t sample = 0; sample < batches.batch; ++sample) {
    if (RankOf(sample, config) == rank) samples.insert(SampleAt(batches, step, sample));
  }
  return samples;
}

TEST(PermutedBatches, KeepsEveryRanksSamplesAndMovesThemBetweenItsMicroBatches) {
  for (const Layout& layout : kLayouts) {
    const RunConfig config = ConfigOf(layout);
    const Batches batches = Example(config.train_batch_size, 3, 4);
    const Batches permuted = PermutedBatches(batches, config, 11);
    for (int64_t step = 4; step < 7; ++step) {
      for (int64_t rank = 0; rank < layout.ranks; ++rank) {
        EXPECT_EQ(SamplesOfRank(permuted, step, rank, config), SamplesOfRank(batches, step, rank, config));
      }
    }
    EXPECT_FALSE(MovesBetweenRanks(batches, permuted, config));
    if (layout.accumulation > 1) continue;
    EXPECT_FALSE(MovesBetweenMicroBatches(batches, permuted, config));
  }
  const RunConfig config = ConfigOf({3, 4, 2});
  const Batches batches = Example(24);
  EXPECT_TRUE(MovesBetweenMicroBatches(batches, PermutedBatches(batches, config, 11), config));
}

TEST(RelabelledBatches, GivesEachRankTheSamplesOfTheNext) {
  for (const Layout& layout : kLayouts) {
    const RunConfig config = ConfigOf(layout);
    const Batches batches = Example(config.train_batch_size);
    const Batches relabelled = RelabelledBatches(batches, config);
    for (int64_t step = 0; step < 3; ++step) {
      for (int64_t rank = 0; rank < layout.ranks; ++rank) {
        EXPECT_EQ(SamplesOfRank(relabelled, step, rank, config),
                  SamplesOfRank(batches, step, (rank + 1) % layout.ranks, config));
      }
    }
    EXPECT_EQ(MovesBetweenRanks(batches, relabelled, config), layout.ranks > 1);
  }
}

TEST(Moves, AreNoneWhereSamplesAreAlikeOrOneStepStays) {
  const RunConfig config = ConfigOf({2, 3, 2});
  Batches alike = Example(12);
  std::fill(alike.tokens.begin(), alike.tokens.end(), 3);
  std::fill(alike.labels.begin(), alike.labels.end(), 4);
  std::fill(alike.loss_weights.begin(), alike.loss_weights.end(), 1);
  EXPECT_FALSE(MovesBetweenRanks(alike, RelabelledBatches(alike, config), config));
  EXPECT_FALSE(MovesBetweenMicroBatches(alike, PermutedBatches(alike, config, 1), config));
  const Batches batches = Example(12);
  Batches one_stays = RelabelledBatches(batches, config);
  for (auto array : {&Batches::tokens, &Batches::labels, &Batches::loss_weights}) {
    std::copy_n((batches.*array).begin() + batches.Index(1, 0, 0), 12 * batches.positions,
                (one_stays.*array).begin() + batches.Index(1, 0, 0));
  }
  EXPECT_FALSE(MovesBetweenRanks(batches, one_stays, config));
  const Batches none = Example(12, 0);
  EXPECT_FALSE(MovesBetweenRanks(none, none, config));
}

// N is a power of two, u is 0, N or 5N, and every sample has a weighted token: as docs/exact-family.md has them.
Batches ExactExample(int64_t batch, uint64_t seed) {
  constexpr int64_t kPositions = 8;
  constexpr int32_t kWeighted = 64;
  Batches batches{1, batch, kPositions, {}, {}, {}, 0};
  const auto count = static_cast<size_t>(batch * kPositions);
  batches.tokens.assign(count, 1);
  batches.labels.assign(count, 2);
  batches.loss_weights.assign(count, 0);
  for (int64_t sample = 0; sample < batch; ++sample) {
    batches.loss_weights[static_cast<size_t>(sample * kPositions)] = kWeighted;
  }
  for (int64_t placed = batch, word = 0; placed < kWeighted; ++word) {
    int32_t& weight = batches.loss_weights[contract::Mix(seed * 1000 + static_cast<uint64_t>(word)) % count];
    if (weight != 0) continue;
    weight = word % 2 ? kWeighted : 5 * kWeighted;
    ++placed;
  }
  return batches;
}

TEST(SplitBatches, HalvesTheTokensOfAnExactBatchBySamplesAndTheirWeights) {
  for (uint64_t seed : {1, 2, 3, 4, 5}) {
    for (const Layout& layout : {Layout{2, 3, 4}, Layout{4, 3, 2}, Layout{3, 8, 1}, Layout{1, 1, 24}}) {
      const RunConfig config = ConfigOf(layout);
      const Batches batches = ExactExample(24, seed);
      ASSERT_EQ(NumWeighted(batches), 64);
      const auto parts = SplitBatches(batches, config, /*is_exact=*/true, seed);
      ASSERT_TRUE(parts) << seed;
      for (const Batches& part : *parts) {
        EXPECT_EQ(NumWeighted(part), 32);
        EXPECT_EQ(part.tokens, batches.tokens);
      }
      for (int64_t sample = 0; sample < 24; ++sample) {
        for (int64_t t = 0; t < batches.positions; ++t) {
          const auto i = static_cast<size_t>(batches.Index(0, sample, t));
          const int32_t first = (*parts)[0].loss_weights[i], second = (*parts)[1].loss_weights[i];
          EXPECT_EQ(2 * (first + second), batches.loss_weights[i]) << "u / N is what it was";
          EXPECT_TRUE(first == 0 || second == 0);
        }
      }
    }
  }
}

TEST(SplitBatches, CutsRanksAndAccumulationStepsUnevenly) {
  const RunConfig config = ConfigOf({4, 3, 2});
  for (bool is_exact : {false, true}) {
    const Batches batches = is_exact ? ExactExample(24, 9) : Example(24, 1);
    const auto parts = SplitBatches(batches, config, is_exact, 5);
    ASSERT_TRUE(parts);
    std::set<int64_t> by_rank, by_step;
    for (int64_t place = 0; place < 4; ++place) {
      int64_t of_rank = 0, of_step = 0;
      for (int64_t sample = 0; sample < 24; ++sample) {
        for (int64_t t = 0; t < batches.positions; ++t) {
          const bool weighted = (*parts)[0].loss_weights[static_cast<size_t>(batches.Index(0, sample, t))] != 0;
          if (RankOf(sample, config) == place) of_rank += weighted;
          if (sample / 8 == place) of_step += weighted;
        }
      }
      by_rank.insert(of_rank);
      if (place < 3) by_step.insert(of_step);
    }
    EXPECT_GT(by_rank.size(), 1u);
    EXPECT_GT(by_step.size(), 1u);
  }
}

TEST(SplitBatches, PutsEveryWeightedTokenOfARealBatchIntoOnePart) {
  for (int64_t batch : {1, 2, 7, 24}) {
    RunConfig config = ConfigOf({1, 1, batch});
    const Batches batches = Example(batch, 1);
    const auto parts = SplitBatches(batches, config, /*is_exact=*/false, 3);
    ASSERT_TRUE(parts) << batch;
    EXPECT_GT(NumWeighted((*parts)[0]), 0);
    EXPECT_GT(NumWeighted((*parts)[1]), 0);
    for (size_t i = 0; i < batches.loss_weights.size(); ++i) {
      EXPECT_EQ((*parts)[0].loss_weights[i] + (*parts)[1].loss_weights[i], batches.loss_weights[i]);
    }
  }
}

TEST(SplitBatches, FindsNoPartsWhereThereIsOneTokenOneSampleOrNone) {
  const RunConfig config = ConfigOf({1, 1, 2});
  Batches batches = Example(2, 1);
  std::fill(batches.loss_weights.begin(), batches.loss_weights.end(), 0);
  EXPECT_FALSE(SplitBatches(batches, config, false, 1));
  EXPECT_FALSE(SplitBatches(batches, config, true, 1));
  batches.loss_weights[3] = 1;
  EXPECT_FALSE(SplitBatches(batches, config, false, 1));
  batches.loss_weights[3] = batches.loss_weights[4] = 2;  // one sample has both tokens
  EXPECT_FALSE(SplitBatches(batches, config, true, 1));
}

}  // namespace
}  // namespace plumbline::conformance
