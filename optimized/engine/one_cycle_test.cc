// SPDX-License-Identifier: Apache-2.0
// Training with a schedule that moves AdamW's first beta in every step, over several updates and a skipped one, against
// a plain loop over the gradients that the engine made. The rate that the trace reports is run_real_case_test.cc's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <vector>

#include "conformance/contract/batch_source.h"
#include "kernels/adamw/adamw.h"
#include "optimized/engine/testing/real_case.h"
#include "optimized/engine/testing/small_case.h"

namespace plumbline::optimized {
namespace {

using contract::CaseData;
using testing::Layout;

constexpr int64_t kNumSteps = 9;
constexpr int64_t kSkipped = 2;
constexpr double kBeta2 = 0.99;

// F = 4, G = 3, rates from 0.002 to 0.01, beta1 from 0.9 down to 0.6. sigma by step: 0, 1/4, 1/2, 3/4, 1, 2/3, 1/3, and
// 0 in step 7; step 8 is after the cycle: 0.002 / (1 + 0.5 * 1 / 2). beta1 = 0.9 - 0.3 sigma, but 0.6 in step 0.
constexpr double kRate[kNumSteps] = {0.002, 0.004, 0.006, 0.008, 0.01, 0.022 / 3, 0.014 / 3, 0.002, 0.0016};
constexpr double kBeta1[kNumSteps] = {0.6, 0.825, 0.75, 0.675, 0.6, 0.7, 0.8, 0.9, 0.9};

// As in run_real_case_test.cc a token of step kSkipped alone has a row of the embedding whose norm overflows.
CaseData MakeCycle(const Layout& layout, bool moves_momentum) {
  CaseData data = testing::MakeRealCase(layout, {.dropout = 0, .tied_head = false, .frozen = {"pos.weight"}});
  data.spec.config.schedule.kind = contract::Schedule::Kind::kOneCycle;
  data.spec.config.schedule.cycle = {.min_lr = 0.002,
                                     .max_lr = 0.01,
                                     .decay_lr_rate = 0.5,
                                     .first_steps = 4,
                                     .second_steps = 3,
                                     .decay_steps = 2,
                                     .moves_momentum = moves_momentum,
                                     .min_momentum = 0.6,
                                     .max_momentum = 0.9};
  data.spec.steps = kNumSteps;
  contract::TokenSource text;
  text.reduce_modulo_vocab = true;
  for (int i = 0; i < 997; ++i) text.tokens.push_back(i * i % 251);
  data.batches = contract::MakeBatches(text, data.spec.model, {data.spec.seed, 0, kNumSteps, testing::kBatch});
  constexpr int32_t kRow = 12;
  std::ranges::replace(data.batches.tokens, kRow, 0);
  data.batches.tokens[data.batches.Index(kSkipped, testing::kBatch - 1, 0)] = kRow;
  for (int64_t i = 0; i < 12; ++i) data.real_state[0].master[kRow * 12 + i] = 3e38f;
  return data;
}

// Of one step: by canonical index, whole.
struct Seen {
  std::vector<std::vector<float>> gradient, master;
  StepResult result;
};

std::vector<Seen> Train(const CaseData& data) {
  std::vector<Seen> seen(kNumSteps);
  for (Seen& step : seen) {
    for (const contract::ParameterSpec& p : data.parameters) {
      step.gradient.emplace_back(p.numel(), NAN);
      step.master.emplace_back(p.numel(), NAN);
    }
  }
  std::mutex mutex;
  testing::RunRanks(data, [&](Training& training) {
    for (int64_t step = 0; step < kNumSteps; ++step) {
      const StepResult result = testing::Step(training, step);
      const std::lock_guard lock(mutex);
      seen[step].result = result;
      for (const ShardSlice& slice : training.shard.slices) {
        std::ranges::copy(training.reducer->Complete(slice),
                          seen[step].gradient[slice.parameter].begin() + slice.begin);
        std::ranges::copy(training.optimizer->Master(slice), seen[step].master[slice.parameter].begin() + slice.begin);
      }
    }
  });
  return seen;
}

// One element, in double. `reach` is the first moment of absolute values, of which roundings of it are shares.
struct Element {
  double p = 0, m = 0, v = 0, reach = 0, bound = 0;

  void Update(double g, double lr, double beta1, double beta2, double decay, double t) {
    p *= 1 - lr * decay;
    m = beta1 * m + (1 - beta1) * g;
    v = beta2 * v + (1 - beta2) * g * g;
    reach = beta1 * reach + (1 - beta1) * std::abs(g);
    const double per_moment = lr / (1 - std::pow(beta1, t)) / (std::sqrt(v / (1 - std::pow(beta2, t))) + 1e-8);
    p -= per_moment * m;
    // The kernel's declared errors of p, and of the t values of both moments that led to this one.
    bound += kernels::kAdamWMaxUnits * 0x1p-24 * (std::abs(p) + (1 + 2 * t) * per_moment * reach);
  }
};

void ExpectPlainLoop(const CaseData& data, const std::vector<Seen>& seen, const contract::ParameterSpec& parameter) {
  const int64_t index = parameter.tensor_id;
  const bool is_bias = parameter.name.ends_with(".bias");  // a group of twice the rate, without decay
  const bool moves_momentum = data.spec.config.schedule.cycle.moves_momentum;
  for (int64_t i = 0; i < parameter.numel(); ++i) {
    Element element{.p = data.real_state[index].master[i]};
    int64_t t = 0;
    for (int64_t step = 0; step < kNumSteps; ++step) {
      if (step != kSkipped) {
        const double clip = std::min(1.0, 0.5 / (seen[step].result.gradient_norm + 1e-6));
        element.Update(clip * seen[step].gradient[index][i], kRate[step] * (is_bias ? 2 : 1),
                       moves_momentum ? kBeta1[step] : 0.9, moves_momentum ? kBeta2 : 0.999, is_bias ? 0 : 0.1,
                       static_cast<double>(++t));
      }
      const double difference = std::abs(seen[step].master[index][i] - element.p);
      ASSERT_TRUE(difference <= element.bound)
          << parameter.name << "[" << i << "] after step " << step << ": " << seen[step].master[index][i] << ", not "
          << element.p << ", bound " << element.bound;
    }
  }
}

TEST(OneCycle, TrainsAsAPlainLoopWithTheRateAndBetasOfEachStep) {
  for (const bool moves_momentum : {true, false}) {
    for (const Layout& layout : {Layout{1, 0, 1}, Layout{3, 2, 2, contract::DType::kF32, 200}}) {
      const CaseData data = MakeCycle(layout, moves_momentum);
      const std::vector<Seen> seen = Train(data);
      for (int64_t step = 0; step < kNumSteps; ++step) EXPECT_EQ(seen[step].result.skipped, step == kSkipped);
      for (const contract::ParameterSpec& p : data.parameters) {
        if (p.frozen) continue;
        ASSERT_NO_FATAL_FAILURE(ExpectPlainLoop(data, seen, p)) << testing::Text(layout);
      }
    }
  }
}

}  // namespace
}  // namespace plumbline::optimized
