// SPDX-License-Identifier: Apache-2.0
// Peaks of memory, calls and bytes of all families against the text of docs/zero3.md and docs/formats.md.
#include <gtest/gtest.h>

#include <map>
#include <mutex>

#include "optimized/comm/ledger.h"
#include "optimized/engine/testing/expected_books.h"
#include "optimized/engine/testing/real_case.h"
#include "optimized/engine/testing/small_case.h"

namespace plumbline::optimized {
namespace {

using contract::CaseData;
using contract::CommCount;
using contract::DType;
using testing::ExpectedComm;
using testing::ExpectedPeaks;
using testing::Layout;
using testing::Peaks;

struct Observed {
  Peaks peaks;
  int64_t gathered_between_steps = 0;
  std::map<std::string, CommCount> comm;
};

// After the last step, by rank; every step must give the same.
std::vector<Observed> Observe(const CaseData& data) {
  std::vector<Observed> ranks(data.spec.config.data_degree);
  testing::RunRanks(
      data,
      [&](Training& training) {
        auto& ledger = dynamic_cast<LedgerCommunicator&>(*training.communicator);
        for (int64_t step = 0; step < testing::kSteps; ++step) {
          ledger.Take();
          testing::Step(training, step);
          Observed now;
          now.comm = ledger.Take().by_kind;
          for (const MemoryCategory category : kMemoryCategories) {
            now.peaks[std::string(Name(category))] = training.memory_ledger.of(category).peak_bytes;
          }
          now.gathered_between_steps = training.memory_ledger.of(MemoryCategory::kGatheredWeights).current_bytes;
          Observed& first = ranks[ledger.rank()];
          if (step == 0) first = now;
          EXPECT_EQ(now.peaks, first.peaks);
          EXPECT_EQ(now.comm, first.comm);
        }
      },
      [](std::unique_ptr<Communicator> inner) { return std::make_unique<LedgerCommunicator>(std::move(inner)); });
  return ranks;
}

TEST(Memory, PeaksEqualTheFormulaInEveryStage) {
  for (const int64_t zero_stage : {0, 1, 2, 3}) {
    for (const int64_t data_degree : {1, 2, 3}) {
      for (const int64_t accumulation : {1, 2}) {
        for (const DType storage : {DType::kF32, DType::kBF16}) {
          for (const int64_t bucket : {int64_t{1}, int64_t{200}, testing::kNoLimit}) {
            const Layout layout{data_degree, zero_stage, accumulation, storage, bucket, {true, 0, 61, 0}};
            const CaseData data = testing::MakeCase(layout);
            for (const Observed& rank : Observe(data)) {
              EXPECT_EQ(rank.peaks, ExpectedPeaks(data)) << testing::Text(layout);
            }
          }
        }
      }
    }
  }
}

TEST(Memory, GathersOfZeroThreeEqualTheFormulaForAllThresholdsAndLimits) {
  for (const int64_t persistence : {0, 61, 133, 157}) {
    for (const int64_t max_live : {0, 300, 572, 573, 728, 729, 1300, 5000}) {
      for (const int64_t accumulation : {1, 2}) {
        const Layout layout{2, 3, accumulation, DType::kBF16, 300, {true, 0, persistence, max_live}};
        const CaseData data = testing::MakeCase(layout);
        for (const Observed& rank : Observe(data)) {
          EXPECT_EQ(rank.comm, ExpectedComm(data)) << testing::Text(layout);
          EXPECT_EQ(rank.peaks, ExpectedPeaks(data)) << testing::Text(layout);
          EXPECT_EQ(rank.gathered_between_steps, 0) << "gathered weights do not outlive the step";
        }
      }
    }
  }
}

const std::vector<std::string> kFrozen = {"embed.weight", "layers.0.attn.qkv.weight", "layers.1.norm2.bias",
                                          "norm.weight"};

void ExpectFormulas(const Layout& layout, const testing::RealOptions& options) {
  CaseData data = testing::MakeRealCase(layout, options);
  data.spec.config.groups[0].clip = options.adaptive_clipping.kind != contract::AdaptiveClipping::Kind::kUnit;
  for (const Observed& rank : Observe(data)) {
    EXPECT_EQ(rank.peaks, ExpectedPeaks(data)) << testing::Text(layout) << " " << Text(options);
    EXPECT_EQ(rank.comm, ExpectedComm(data)) << testing::Text(layout) << " " << Text(options);
    EXPECT_EQ(rank.gathered_between_steps, 0);
  }
}

TEST(Memory, PeaksCallsAndBytesOfGpt2EqualTheFormulaInEveryStage) {
  const std::vector<testing::RealOptions> variants = {
      {.optimizer = contract::OptimizerKind::kAdamW, .frozen = kFrozen},
      {.optimizer = contract::OptimizerKind::kSgd, .tied_head = false},
      {.optimizer = contract::OptimizerKind::kLamb, .frozen = kFrozen},
      {.optimizer = contract::OptimizerKind::kLion, .dropout = 0, .adaptive_clipping = testing::kUnitClipping},
      {.optimizer = contract::OptimizerKind::kLamb,
       .tied_head = false,
       .frozen = kFrozen,
       .adaptive_clipping = testing::kUnitClipping},
      {.optimizer = contract::OptimizerKind::kSgd, .momentum = 0, .clipping = 0, .dropout = 0, .unused = false},
      {.optimizer = contract::OptimizerKind::kAdamW,
       .clipping = 0,
       .dropout = 0,
       .tied_head = false,
       .frozen = {"unused.weight", "head.weight", "pos.weight"}}};
  for (const testing::RealOptions& options : variants) {
    for (const int64_t zero_stage : {0, 1, 2, 3}) {
      for (const int64_t data_degree : {1, 2, 3}) {
        for (const int64_t accumulation : {1, 2}) {
          for (const DType storage : {DType::kF32, DType::kBF16, DType::kF16}) {
            for (const int64_t bucket : {int64_t{1}, int64_t{200}, testing::kNoLimit}) {
              ExpectFormulas({data_degree, zero_stage, accumulation, storage, bucket, {true, 0, 61, 0}}, options);
            }
          }
        }
      }
    }
  }
}

TEST(Memory, GathersOfGpt2EqualTheFormulaForAllThresholdsAndLimits) {
  for (const bool tied : {false, true}) {
    for (const int64_t persistence : {0, 13, 133, 157}) {
      for (const int64_t max_live : {0, 300, 959, 960, 1115, 1116, 2300, 5000}) {
        for (const int64_t accumulation : {1, 2}) {
          ExpectFormulas({2, 3, accumulation, DType::kBF16, 300, {true, 0, persistence, max_live}},
                         {.tied_head = tied, .frozen = {"layers.1.attn.out.weight"}});
        }
      }
    }
  }
}

// By default with lengths, so that most micro-batches are shorter than what memory is taken for.
TEST(Memory, PeaksCallsAndBytesOfLlamaEqualTheFormulaInEveryStage) {
  constexpr auto kLlama = contract::Family::kLlama;
  const std::vector<std::string> frozen = {"embed.weight", "layers.0.attn.k.weight", "layers.1.norm2.weight"};
  const std::vector<testing::RealOptions> variants = {
      {.family = kLlama, .frozen = frozen},
      {.family = kLlama, .optimizer = contract::OptimizerKind::kLamb, .kv_heads = 3, .unequal_lengths = false},
      {.family = kLlama,
       .optimizer = contract::OptimizerKind::kLion,
       .dropout = 0,
       .frozen = frozen,
       .adaptive_clipping = testing::kUnitClipping},
      {.family = kLlama,
       .optimizer = contract::OptimizerKind::kSgd,
       .momentum = 0,
       .clipping = 0,
       .dropout = 0,
       .kv_heads = 3,
       .unused = false}};
  for (const testing::RealOptions& options : variants) {
    for (const int64_t zero_stage : {0, 1, 2, 3}) {
      for (const int64_t data_degree : {1, 3}) {
        for (const int64_t accumulation : {1, 2}) {
          for (const DType storage : {DType::kF32, DType::kBF16, DType::kF16}) {
            for (const int64_t bucket : {int64_t{1}, int64_t{200}, testing::kNoLimit}) {
              ExpectFormulas({data_degree, zero_stage, accumulation, storage, bucket, {true, 0, 61, 0}}, options);
            }
          }
        }
      }
    }
  }
}

TEST(Memory, GathersOfLlamaEqualTheFormulaForAllThresholdsAndLimits) {
  for (const int64_t kv_heads : {1, 3}) {
    for (const int64_t persistence : {0, 13, 133, 157}) {
      for (const int64_t max_live : {0, 300, 780, 1000, 1300, 2300, 5000}) {
        for (const int64_t accumulation : {1, 2}) {
          ExpectFormulas(
              {2, 3, accumulation, DType::kBF16, 300, {true, 0, persistence, max_live}},
              {.family = contract::Family::kLlama, .kv_heads = kv_heads, .frozen = {"layers.1.attn.out.weight"}});
        }
      }
    }
  }
}

TEST(Memory, PrefetchMovesGathersWithoutAddingAnyAndRaisesThePeakWithinTheLimit) {
  const Observed without = Observe(testing::MakeCase({2, 3, 1, DType::kBF16, 300, {true, 0, 0, 900}}))[0];
  const Observed with = Observe(testing::MakeCase({2, 3, 1, DType::kBF16, 300, {true, 700, 0, 900}}))[0];
  EXPECT_EQ(with.comm, without.comm);
  EXPECT_GT(with.peaks.at("gathered_weights"), without.peaks.at("gathered_weights"));
}

}  // namespace
}  // namespace plumbline::optimized
