// SPDX-License-Identifier: Apache-2.0
// Training that clips by the history of norms, from a history that the case gives, with a skipped step in between:
// history and updates against a plain loop over the norms and gradients that the engine reports.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <vector>

#include "optimized/engine/testing/real_case.h"

namespace plumbline::optimized {
namespace {

using contract::CaseData;
using contract::NormHistory;
using testing::Layout;

constexpr int64_t kSkipped = 1;
constexpr NormHistory kBefore{1, 0.3, 0.02};
constexpr double kLr = 0.01, kDecay = 0.1;

// Plain SGD in one group but for what is exempt. As in run_real_case_test.cc a token of step kSkipped alone has a row
// of the embedding whose norm overflows.
CaseData MakeHistoryCase(const Layout& layout) {
  CaseData data = testing::MakeRealCase(layout, {.optimizer = contract::OptimizerKind::kSgd,
                                                 .momentum = 0,
                                                 .dropout = 0,
                                                 .tied_head = false,
                                                 .frozen = {"pos.weight"},
                                                 .adaptive_clipping = testing::kHistoryClipping});
  data.spec.config.groups = {{.match = "*.mlp.*.weight", .lr = {}, .weight_decay = {}, .clip = false}};
  data.norm_history = kBefore;
  constexpr int32_t kRow = 12;
  std::ranges::replace(data.batches.tokens, kRow, 0);
  data.batches.tokens[data.batches.Index(kSkipped, testing::kBatch - 1, 0)] = kRow;
  for (int64_t i = 0; i < 12; ++i) data.real_state[0].master[kRow * 12 + i] = 3e38f;
  return data;
}

// Of one step: tensors by canonical index, whole.
struct Seen {
  std::vector<std::vector<float>> gradient, master;
  StepResult result;
  NormHistory history;
};

std::vector<Seen> Train(const CaseData& data) {
  std::vector<Seen> seen(testing::kSteps);
  for (Seen& step : seen) {
    for (const contract::ParameterSpec& p : data.parameters) {
      step.gradient.emplace_back(p.numel(), NAN);
      step.master.emplace_back(p.numel(), NAN);
    }
  }
  std::mutex mutex;
  testing::RunRanks(data, [&](Training& training) {
    for (int64_t step = 0; step < testing::kSteps; ++step) {
      const StepResult result = testing::Step(training, step);
      const std::lock_guard lock(mutex);
      EXPECT_TRUE(seen[step].history == NormHistory() || seen[step].history == training.norm_history) << "ranks differ";
      seen[step].result = result;
      seen[step].history = training.norm_history;
      for (const ShardSlice& slice : training.shard.slices) {
        std::ranges::copy(training.reducer->Complete(slice),
                          seen[step].gradient[slice.parameter].begin() + slice.begin);
        std::ranges::copy(training.optimizer->Master(slice), seen[step].master[slice.parameter].begin() + slice.begin);
      }
    }
  });
  return seen;
}

// n is 1 in steps 0 and 1, of which the second is skipped, then 2, which is N, and 3. z = 1/4, alpha = 3/4.
struct Expected {
  double mean = kBefore.mean, variance = kBefore.variance;

  // Returns the factor of the step, and remembers its norm.
  double Next(int64_t step, double norm) {
    if (step == 0) {
      const double new_mean = (mean + norm) / 2;
      variance = (variance + (norm - mean) * (norm - new_mean)) / 2;
      mean = new_mean;
      return 1;
    }
    const double threshold = mean + std::sqrt(variance) / 4;
    const double seen = std::min(norm, threshold);
    mean = 0.75 * mean + 0.25 * seen;
    variance = 0.75 * variance + 0.25 * (seen - mean) * (seen - mean);
    return std::min(1.0, threshold / (norm + 1e-6));
  }
};

void ExpectUpdate(const CaseData& data, const std::vector<Seen>& seen, int64_t step, double factor) {
  for (const contract::ParameterSpec& p : data.parameters) {
    if (p.frozen) continue;
    const bool is_exempt = p.name.find(".mlp.") != std::string::npos && p.name.ends_with(".weight");
    for (int64_t i = 0; i < p.numel(); ++i) {
      const double old = step == 0 ? data.real_state[p.tensor_id].master[i] : seen[step - 1].master[p.tensor_id][i];
      const double move = kLr * ((is_exempt ? 1 : factor) * seen[step].gradient[p.tensor_id][i] + kDecay * old);
      ASSERT_NEAR(seen[step].master[p.tensor_id][i], old - move, 0x1p-24 * (std::abs(old) + 8 * std::abs(move)))
          << p.name << " in step " << step;
    }
  }
}

TEST(NormHistory, FollowsAPlainLoopThroughWarmupSkippedStepAndClippedOnesInEveryStage) {
  for (const Layout& layout : {Layout{1, 0, 1}, Layout{3, 0, 2}, Layout{3, 1, 1, contract::DType::kF32, 200},
                               Layout{2, 2, 3}, Layout{3, 3, 2, contract::DType::kF32, 300}}) {
    const CaseData data = MakeHistoryCase(layout);
    const std::vector<Seen> seen = Train(data);
    Expected expected;
    int num_clipped = 0;
    for (int64_t step = 0; step < testing::kSteps; ++step) {
      EXPECT_EQ(seen[step].result.skipped, step == kSkipped);
      if (step == kSkipped) {
        EXPECT_EQ(seen[step].history, seen[step - 1].history);
        continue;
      }
      const double factor = expected.Next(step, seen[step].result.gradient_norm);
      num_clipped += factor < 0.95 ? 1 : 0;
      EXPECT_EQ(seen[step].history.count, step == 0 ? 2 : step + 1);
      EXPECT_NEAR(seen[step].history.mean, expected.mean, 1e-14 * expected.mean);
      EXPECT_NEAR(seen[step].history.variance, expected.variance, 1e-13 * expected.variance);
      ASSERT_NO_FATAL_FAILURE(ExpectUpdate(data, seen, step, factor)) << testing::Text(layout);
    }
    EXPECT_GT(num_clipped, 0) << testing::Text(layout);
  }
}

}  // namespace
}  // namespace plumbline::optimized
