// SPDX-License-Identifier: Apache-2.0
// Overlap: late results change nothing, and computing hides communication only where it is asked to.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <mutex>

#include "optimized/comm/ledger.h"
#include "optimized/comm/testing/late_communicator.h"
#include "optimized/engine/testing/small_case.h"

namespace plumbline::optimized {
namespace {

using contract::CaseData;
using contract::DType;
using testing::Layout;
using namespace std::chrono_literals;

// What every rank holds after all steps, and the losses.
std::vector<std::pair<testing::HeldState, std::vector<double>>> Train(const Layout& layout,
                                                                      const testing::Wrap& wrap = testing::NoWrap) {
  const CaseData data = testing::MakeCase(layout);
  std::vector<std::pair<testing::HeldState, std::vector<double>>> ranks(layout.data_degree);
  testing::RunRanks(
      data,
      [&](Training& training) {
        auto& [state, losses] = ranks[training.communicator->rank()];
        for (int64_t step = 0; step < testing::kSteps; ++step) losses.push_back(testing::Step(training, step).loss);
        state = testing::StateOf(training);
      },
      wrap);
  return ranks;
}

TEST(Overlap, ResultsThatAreReadAndWrittenOnlyInWaitAreTheSame) {
  for (const int64_t zero_stage : {0, 1, 2, 3}) {
    for (const int64_t accumulation : {1, 2}) {
      for (const bool overlap : {false, true}) {
        for (const int64_t limit : {0, 600}) {
          const Layout layout{3, zero_stage, accumulation, DType::kBF16, 200, {overlap, limit, 0, limit}};
          const auto late = Train(layout, [](std::unique_ptr<Communicator> inner) {
            return std::make_unique<testing::LazyCommunicator>(std::move(inner));
          });
          EXPECT_EQ(late, Train(layout)) << testing::Text(layout);
        }
      }
    }
  }
}

struct Times {
  double step_us = 0;
  double wait_us = 0;
};

// The best step of several over a link with this latency, measured on rank 0.
Times BestStep(const Layout& layout, std::chrono::microseconds delay) {
  const CaseData data = testing::MakeCase(layout);
  Times best{1e18, 1e18};
  std::mutex mutex;
  std::vector<LedgerCommunicator*> ledgers;
  testing::RunRanks(
      data,
      [&](Training& training) {
        auto& ledger = dynamic_cast<LedgerCommunicator&>(*training.communicator);
        for (int64_t step = 0; step < testing::kSteps; ++step) {
          ledger.Take();
          const double step_us = testing::Step(training, step).timings.step_us;
          const double wait_us = ledger.Take().wait_us;
          const std::lock_guard lock(mutex);
          if (ledger.rank() == 0 && step_us < best.step_us) best = {step_us, wait_us};
        }
      },
      [&](std::unique_ptr<Communicator> inner) {
        return std::make_unique<LedgerCommunicator>(
            std::make_unique<testing::DelayedCommunicator>(std::move(inner), delay));
      });
  return best;
}

// Fourteen buckets: without overlap a step waits for each of fourteen reductions, with it for the last ones only.
TEST(Overlap, AStepOverASlowLinkTakesLessThanHalfAsLongWithOverlap) {
  for (const int64_t zero_stage : {0, 1, 2}) {
    const Times off = BestStep({2, zero_stage, 1, DType::kF32, 1, {.overlap_comm = false}}, 5ms);
    const Times on = BestStep({2, zero_stage, 1, DType::kF32, 1, {.overlap_comm = true}}, 5ms);
    RecordProperty("zero_" + std::to_string(zero_stage) + "_ratio", std::to_string(off.step_us / on.step_us));
    std::printf("stage %d: step %.0f us off, %.0f us on, ratio %.2f; waiting %.0f us off, %.0f us on\n",
                static_cast<int>(zero_stage), off.step_us, on.step_us, off.step_us / on.step_us, off.wait_us,
                on.wait_us);
    EXPECT_GT(off.step_us, 14 * 5000) << "each reduction is waited for";
    EXPECT_GT(off.step_us / on.step_us, 2);
    EXPECT_GT(off.wait_us / on.wait_us, 2);
    EXPECT_LE(on.wait_us, on.step_us);
  }
}

// Fifteen uses, of which thirteen gather something; the gathers of uses ahead are under way at the same time.
TEST(Overlap, PrefetchHidesGathersOverASlowLink) {
  const Times off = BestStep({2, 3, 1, DType::kF32, testing::kNoLimit, {true, 0, 0, 0}}, 5ms);
  const Times on = BestStep({2, 3, 1, DType::kF32, testing::kNoLimit, {true, testing::kNoLimit, 0, 2000}}, 5ms);
  std::printf("stage 3: step %.0f us without prefetch, %.0f us with, ratio %.2f; waiting %.0f us, %.0f us\n",
              off.step_us, on.step_us, off.step_us / on.step_us, off.wait_us, on.wait_us);
  EXPECT_GT(off.step_us / on.step_us, 1.4);
}

}  // namespace
}  // namespace plumbline::optimized
