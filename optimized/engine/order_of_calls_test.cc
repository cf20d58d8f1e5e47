// SPDX-License-Identifier: Apache-2.0
// The order and the bytes of the calls that a step makes after its backward, in steps that update and in steps that are
// skipped, against docs/formats.md, "The order of calls".
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "conformance/contract/digest.h"
#include "optimized/comm/ledger.h"
#include "optimized/engine/testing/real_case.h"

namespace plumbline::optimized {
namespace {

using contract::CaseData;
using testing::Layout;

constexpr uint64_t kAllReduce = 1, kReduceScatter = 2, kAllGather = 3;

struct Call {
  uint64_t kind;
  int64_t bytes;
};

uint64_t SequenceOf(const std::vector<Call>& calls) {
  uint64_t sequence = 0;
  for (const Call& call : calls) {
    sequence = contract::Mix(sequence + 4 * static_cast<uint64_t>(call.bytes) + call.kind);
  }
  return sequence;
}

// Rows of embed (13), pos (5) and unused (3); the columns of both layers' matrices, 36 + 12 + 11 + 12; two norm weights
// in each and the last one. Biases are exempt here.
constexpr int64_t kNumUnits = 13 + 5 + 3 + 2 * (36 + 12 + 11 + 12) + 2 * 2 + 1;
constexpr int64_t kNumParameters = 2 + 2 * 12 + 2 + 1;

CaseData MakeCase(int64_t stage, contract::OptimizerKind optimizer, bool clips_units) {
  testing::RealOptions options{.optimizer = optimizer};
  if (clips_units) options.adaptive_clipping = testing::kUnitClipping;
  CaseData data = testing::MakeRealCase({.data_degree = 2, .zero_stage = stage}, options);
  data.spec.config.groups[0].clip = false;
  return data;
}

void ExpectCalls(const CaseData& data, const std::vector<int64_t>& sums, bool skips) {
  testing::RunRanks(
      data,
      [&](Training& training) {
        auto& ledger = dynamic_cast<LedgerCommunicator&>(*training.communicator);
        const int64_t padded = training.buckets.total_elems;
        ASSERT_EQ(training.buckets.buckets.size(), 1u);
        std::vector<Call> calls = {{kAllReduce, 8}, {kReduceScatter, 4 * padded}, {kAllReduce, 8}};
        for (const int64_t bytes : sums) calls.push_back({kAllReduce, bytes});
        calls.push_back({kAllGather, 4 * padded});
        for (int64_t step = 0; step < testing::kSteps; ++step) {
          ledger.Take();
          EXPECT_EQ(testing::Step(training, step).skipped, skips);
          EXPECT_EQ(ledger.Take().sequence, SequenceOf(calls));
        }
      },
      [](std::unique_ptr<Communicator> inner) { return std::make_unique<LedgerCommunicator>(std::move(inner)); });
}

TEST(OrderOfCalls, TheNormThenUnitsThenLambAlsoInASkippedStep) {
  using contract::OptimizerKind;
  const int64_t norm = 168, units = 336 * kNumUnits, lamb = 336 * kNumParameters;
  for (const int64_t stage : {1, 2}) {
    for (const bool skips : {false, true}) {
      const auto expect = [&](OptimizerKind optimizer, bool clips_units, const std::vector<int64_t>& sums) {
        CaseData data = MakeCase(stage, optimizer, clips_units);
        if (skips) data.real_state[4].master[7] = INFINITY;
        ExpectCalls(data, sums, skips);
      };
      expect(OptimizerKind::kAdamW, false, {norm});
      expect(OptimizerKind::kLion, true, {norm, units});
      expect(OptimizerKind::kLamb, false, {norm, lamb});
      expect(OptimizerKind::kLamb, true, {norm, units, lamb});
    }
  }
}

}  // namespace
}  // namespace plumbline::optimized
