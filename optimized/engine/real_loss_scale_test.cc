// SPDX-License-Identifier: Apache-2.0
// The real families in fp16 with a loss scale: gradients are those of fp32 within roundings whatever the scale is; an
// overflow on one rank skips the step on all, leaves everything but the scaler, and is over with the step.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <string>
#include <vector>

#include "conformance/contract/error.h"
#include "kernels/fp16.h"
#include "optimized/engine/testing/case_run.h"
#include "optimized/engine/testing/real_case.h"

namespace plumbline::optimized {
namespace {

using contract::CaseData;
using contract::DType;
using contract::DynamicLossScale;
using contract::Family;
using contract::LossScaler;
using contract::OptimizerKind;
using testing::kSteps;
using testing::Layout;
using testing::MakeRealCase;
using testing::RealOptions;

constexpr Family kFamilies[] = {Family::kGpt2, Family::kLlama};

CaseData MakeFp16Case(Layout layout, const RealOptions& options, int64_t loss_scale) {
  layout.storage = DType::kF16;
  CaseData data = MakeRealCase(layout, options);
  data.spec.config.loss_scale = loss_scale;
  return data;
}

CaseData MakeDynamicCase(const Layout& layout, const RealOptions& options, const DynamicLossScale& settings) {
  CaseData data = MakeFp16Case(layout, options, 0);
  data.spec.config.dynamic_loss_scale = settings;
  data.loss_scaler = contract::InitialLossScaler(settings);
  return data;
}

// After one step; tensors by canonical index, whole.
struct Seen {
  std::vector<std::vector<float>> gradient, master, moment;
  StepResult result;
  LossScaler scaler;
  contract::NormHistory history;
  int64_t num_updates = 0;
  bool is_seen = false;  // by a rank
};

std::vector<Seen> Train(const CaseData& data) {
  std::vector<Seen> seen(data.spec.steps);
  for (Seen& step : seen) {
    for (const contract::ParameterSpec& p : data.parameters) {
      for (auto* quantity : {&step.gradient, &step.master, &step.moment}) quantity->emplace_back(p.numel(), 0.0f);
    }
  }
  std::mutex mutex;
  testing::RunRanks(data, [&](Training& training) {
    for (int64_t i = 0; i < data.spec.steps; ++i) {
      const StepResult result = testing::Step(training, data.spec.first_step + i);
      const std::lock_guard lock(mutex);
      Seen& step = seen[i];
      if (step.is_seen) {
        EXPECT_EQ(step.scaler, training.loss_scaler) << "ranks differ";
        EXPECT_EQ(step.result.skipped, result.skipped) << "ranks differ";
      }
      step.is_seen = true;
      step.result = result;
      step.scaler = training.loss_scaler;
      step.history = training.norm_history;
      step.num_updates = training.num_updates;
      for (const ShardSlice& slice : training.shard.slices) {
        const auto copy = [&](std::span<const float> values, std::vector<std::vector<float>>& target) {
          std::ranges::copy(values, target[slice.parameter].begin() + slice.begin);
        };
        copy(training.reducer->Complete(slice), step.gradient);
        copy(training.optimizer->Master(slice), step.master);
        if (training.optimizer->has_moment()) copy(training.optimizer->Moment(slice), step.moment);
      }
    }
  });
  return seen;
}

double Norm(const std::vector<float>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

// The largest error of a tensor's gradient, as a share of its norm.
double LargestError(const CaseData& data, const Seen& actual, const Seen& expected) {
  double largest = 0;
  for (const contract::ParameterSpec& p : data.parameters) {
    std::vector<float> difference = actual.gradient[p.tensor_id];
    for (size_t i = 0; i < difference.size(); ++i) difference[i] -= expected.gradient[p.tensor_id][i];
    const double norm = Norm(expected.gradient[p.tensor_id]);
    const double error = norm == 0 ? Norm(difference) : Norm(difference) / norm;
    EXPECT_TRUE(std::isfinite(error)) << p.name;
    largest = std::max(largest, error);
  }
  return largest;
}

// As in gpt2_model_test.cc: a value goes through about 64 tensors of two layers, whose roundings add up at random.
constexpr double kFp16Bound = 3 * 8 * kernels::kUnitRoundoff<kernels::Float16>;

TEST(RealLossScale, GradientsAndNormsAreThoseOfFp32WithinRoundingsWhateverTheScale) {
  for (const Family family : kFamilies) {
    const Layout layout{2, 1, 2};
    CaseData plain = MakeRealCase(layout, {.family = family});
    for (contract::RealParameterState& state : plain.real_state) {
      for (float& value : state.master) value = kernels::ToFloat(kernels::FromFloat<kernels::Float16>(value));
    }
    const std::vector<Seen> expected = Train(plain);
    std::vector<std::vector<Seen>> of_scale;
    for (const int64_t scale : {int64_t{1} << 9, int64_t{1} << 12}) {
      CaseData data = MakeFp16Case(layout, {.family = family}, scale);
      data.real_state = plain.real_state;
      const std::vector<Seen> seen = Train(data);
      const double error = LargestError(data, seen[0], expected[0]);
      EXPECT_LE(error, kFp16Bound) << scale;
      EXPECT_GT(error, kernels::kUnitRoundoff<kernels::Float16> / 4) << "it is fp16";
      for (int64_t step = 0; step < kSteps; ++step) {
        EXPECT_FALSE(seen[step].result.skipped);
        EXPECT_NEAR(seen[step].result.loss, expected[step].result.loss, kFp16Bound * expected[step].result.loss);
      }
      const double norm = expected[0].result.gradient_norm;
      EXPECT_NEAR(seen[0].result.gradient_norm, norm, kFp16Bound * norm);
      of_scale.push_back(seen);
    }
    // What a larger scale saves from among the subnormal numbers is all that differs.
    EXPECT_LE(LargestError(plain, of_scale[1][0], of_scale[0][0]), kFp16Bound / 8);
    EXPECT_EQ(of_scale[1][0].result.loss, of_scale[0][0].result.loss);
  }
}

// A step is scaled and divided by the same scale, also where it doubles the scale.
TEST(RealLossScale, AStepOfADynamicScaleHasTheBitsOfAFixedOneOfThatSize) {
  for (const Family family : kFamilies) {
    const Layout layout{2, 2, 1};
    const std::vector<Seen> moving =
        Train(MakeDynamicCase(layout, {.family = family}, {.initial_scale_power = 9, .window = 1}));
    for (int64_t step = 0; step < kSteps; ++step) {
      EXPECT_EQ(moving[step].scaler, (LossScaler{std::ldexp(0x1p10, static_cast<int>(step)), step + 1, -1, 2}));
    }
    const std::vector<Seen> fixed = Train(MakeFp16Case(layout, {.family = family}, 512));
    EXPECT_EQ(moving[0].gradient, fixed[0].gradient);
    EXPECT_EQ(moving[0].master, fixed[0].master);
    for (int64_t step = 1; step < kSteps; ++step) {
      const double norm = fixed[step].result.gradient_norm;
      EXPECT_NEAR(moving[step].result.gradient_norm, norm, 0.1 * norm) << "no factor of two is left";
    }
  }
}

// Step 0 has one weighted token, of the last sample, hence of the last rank: its dlogits are about the scale itself, in
// other steps about a thirtieth of it. All gradients of other ranks are zeros, and no NaN.
CaseData WithOneTokenInStepZero(CaseData data) {
  const auto begin = data.batches.loss_weights.begin();
  std::fill(begin, begin + testing::kBatch * data.batches.positions, 0);
  data.batches.loss_weights[data.batches.Index(0, testing::kBatch - 1, 0)] = 1;
  return data;
}

// The run without step 0.
CaseData FromStepOne(CaseData data, const LossScaler& scaler) {
  const int64_t elems = testing::kBatch * data.batches.positions;
  for (auto* values : {&data.batches.tokens, &data.batches.labels, &data.batches.loss_weights}) {
    values->erase(values->begin(), values->begin() + elems);
  }
  if (!data.batches.lengths.empty()) {
    data.batches.lengths.erase(data.batches.lengths.begin(), data.batches.lengths.begin() + testing::kBatch);
  }
  data.spec.first_step = data.batches.first_step = 1;
  data.spec.steps = data.batches.steps = kSteps - 1;
  data.loss_scaler = scaler;
  return data;
}

void ExpectSameState(const CaseData& data, const Seen& a, const Seen& b) {
  EXPECT_EQ(a.num_updates, b.num_updates);
  EXPECT_EQ(a.history, b.history);
  EXPECT_EQ(a.scaler, b.scaler);
  for (const contract::ParameterSpec& p : data.parameters) {
    EXPECT_EQ(a.master[p.tensor_id], b.master[p.tensor_id]) << p.name;
    EXPECT_EQ(a.moment[p.tensor_id], b.moment[p.tensor_id]) << p.name;
  }
}

void ExpectSkippedStepZero(const CaseData& data, const Seen& seen) {
  EXPECT_TRUE(seen.result.skipped);
  EXPECT_FALSE(std::isfinite(seen.result.gradient_norm));
  EXPECT_TRUE(std::isfinite(seen.result.loss)) << "the loss is not scaled";
  EXPECT_EQ(seen.num_updates, data.num_updates);
  EXPECT_EQ(seen.history, data.norm_history);
  for (const contract::ParameterSpec& p : data.parameters) {
    EXPECT_EQ(seen.master[p.tensor_id], data.real_state[p.tensor_id].master) << p.name;
    if (!data.real_state[p.tensor_id].moment.empty()) {
      EXPECT_EQ(seen.moment[p.tensor_id], data.real_state[p.tensor_id].moment) << p.name;
    }
  }
}

std::vector<Layout> LayoutsOfAllStages(int64_t accumulation) {
  std::vector<Layout> layouts;
  for (const int64_t stage : {0, 1, 2, 3}) {
    layouts.push_back({3, stage, accumulation, DType::kF16, 200, {stage % 2 == 0, 300, 13, 800}});
  }
  return layouts;
}

TEST(RealLossScale, AnOverflowOnOneRankSkipsTheStepOnAllAndTheNextOneIsThatOfARunWithoutIt) {
  const DynamicLossScale settings{.initial_scale_power = 17, .window = 3, .hysteresis = 2};
  for (const Family family : kFamilies) {
    for (const RealOptions& options :
         {RealOptions{.family = family}, RealOptions{.family = family, .optimizer = OptimizerKind::kLamb, .dropout = 0},
          RealOptions{.family = family, .optimizer = OptimizerKind::kAdam, .adaptive_clipping = testing::kUnitClipping},
          RealOptions{
              .family = family, .optimizer = OptimizerKind::kSgd, .adaptive_clipping = testing::kHistoryClipping}}) {
      for (const int64_t accumulation : {1, 2}) {
        std::vector<Seen> first;
        for (const Layout& layout : LayoutsOfAllStages(accumulation)) {
          SCOPED_TRACE(testing::Text(layout) + " " + testing::Text(options));
          CaseData data = WithOneTokenInStepZero(MakeDynamicCase(layout, options, settings));
          data.num_updates = 5;
          data.norm_history = {1, 0.75, 0.25};
          const std::vector<Seen> seen = Train(data);
          ExpectSkippedStepZero(data, seen[0]);
          const LossScaler after{0x1p17, 1, 0, 1};
          EXPECT_EQ(seen[0].scaler, after);
          const std::vector<Seen> rest = Train(FromStepOne(data, after));
          for (int64_t step = 1; step < kSteps; ++step) {
            EXPECT_FALSE(seen[step].result.skipped);
            EXPECT_TRUE(std::isfinite(seen[step].result.gradient_norm));
            ExpectSameState(data, seen[step], rest[step - 1]);
          }
          EXPECT_EQ(seen[2].scaler, (LossScaler{0x1p17, 3, 0, 1}));
          EXPECT_EQ(seen[3].scaler, (LossScaler{0x1p18, 4, 0, 2})) << "after a window of three steps";
          if (first.empty()) first = seen;
          if (accumulation == 1) ExpectSameState(data, seen[3], first[3]);
        }
      }
    }
  }
}

TEST(RealLossScale, OnOtherRanksThanTheOneThatOverflowsZerosStayZeros) {
  const CaseData data = WithOneTokenInStepZero(MakeDynamicCase({3, 0, 1}, {.frozen = {}}, {.initial_scale_power = 60}));
  testing::RunRanks(data, [&](Training& training) {
    const contract::Batches& batches = data.batches;
    if (training.communicator->rank() > 0) return;
    const auto span = [&](const std::vector<int32_t>& values) {
      return std::span(values).first(4 * batches.positions);
    };
    const MicroBatch micro_batch{0, 0, span(batches.tokens), span(batches.labels), span(batches.loss_weights)};
    training.weights->BeginStep();
    const std::span<const WriteMode> modes = training.reducer->BeginMicroBatch(true, false);
    training.model->Forward(micro_batch);
    EXPECT_EQ(training.model->Loss(1, INFINITY), 0);  // beyond any scale
    training.model->Backward(modes, [](int64_t) {});
    for (const contract::ParameterSpec& p : data.parameters) {
      const std::span<const float> gradient(training.memory.gradients[p.tensor_id], static_cast<size_t>(p.numel()));
      EXPECT_TRUE(std::ranges::all_of(gradient, [](float value) { return value == 0; })) << p.name;
    }
  });
}

TEST(RealLossScale, ScalesThatAreFarTooLargeSkipEveryStepInEveryStageAndFallUnlessTheyAreFixed) {
  for (const Family family : kFamilies) {
    for (const Layout& layout : LayoutsOfAllStages(2)) {
      SCOPED_TRACE(testing::Text(layout));
      for (const double scale : {0x1p32, 0x1p126}) {
        CaseData data = MakeDynamicCase(layout, {.family = family}, {.initial_scale_power = 32, .hysteresis = 1});
        data.loss_scaler = {scale, 7, 3, 1};
        const std::vector<Seen> seen = Train(data);
        for (int64_t step = 0; step < kSteps; ++step) {
          EXPECT_TRUE(seen[step].result.skipped);
          EXPECT_EQ(seen[step].scaler,
                    (LossScaler{std::ldexp(scale, -1 - static_cast<int>(step)), 8 + step, 7 + step, 1}));
          ExpectSkippedStepZero(data, seen[step]);
        }
      }
      const CaseData fixed = MakeFp16Case(layout, {.family = family}, int64_t{1} << 24);
      for (const Seen& step : Train(fixed)) {
        EXPECT_TRUE(step.result.skipped);
        EXPECT_EQ(step.scaler, LossScaler());
      }
    }
  }
}

TEST(RealLossScale, TracesOfAllRanksTellTheScalerExactlyWhereItIsDynamic) {
  const CaseData dynamic = WithOneTokenInStepZero(
      MakeDynamicCase({3, 2, 1}, {}, {.initial_scale_power = 17, .window = 2, .hysteresis = 1, .min_scale = 64}));
  const LossScaler expected[] = {{0x1p16, 1, 0, 1}, {0x1p16, 2, 0, 1}, {0x1p17, 3, 0, 1}, {0x1p17, 4, 0, 1}};
  const auto dynamic_dir = testing::RunInFreshFolders(dynamic);
  const auto fixed_dir = testing::RunInFreshFolders(MakeFp16Case({3, 2, 1}, {}, 512));
  for (int64_t rank = 0; rank < 3; ++rank) {
    for (const contract::StepRecord& record : contract::ReadTrace(dynamic_dir, rank).steps) {
      EXPECT_EQ(record.real->skipped, record.step == 0);
      EXPECT_EQ(record.real->loss_scaler, expected[record.step]);
    }
    for (const contract::StepRecord& record : contract::ReadTrace(fixed_dir, rank).steps) {
      EXPECT_FALSE(record.real->loss_scaler);
    }
  }
}

TEST(RealLossScale, ARunThatResumesInTheMiddleOfAWindowGoesOnWithTheSameBits) {
  for (const Family family : kFamilies) {
    for (const Layout& layout : LayoutsOfAllStages(2)) {
      SCOPED_TRACE(testing::Text(layout));
      CaseData data = WithOneTokenInStepZero(
          MakeDynamicCase(layout, {.family = family}, {.initial_scale_power = 17, .window = 2, .hysteresis = 2}));
      data.spec.save_steps = {0, 1, 2};
      const auto whole_dir = testing::RunInFreshFolders(data);
      EXPECT_EQ(contract::ReadTrace(whole_dir, 1).steps[2].real->loss_scaler, (LossScaler{0x1p18, 3, 0, 2}));
      for (const int64_t step : data.spec.save_steps) {
        CaseData resumed = data;
        resumed.spec.save_steps = {};
        resumed.spec.resume = true;
        resumed.loss_scaler = {256, 9, 8, 1};  // the checkpoint's counts
        const auto saved = whole_dir / ("checkpoint-00000" + std::to_string(step));
        const auto resumed_dir = testing::RunInFreshFolders(resumed, saved);
        for (int64_t rank = 0; rank < 3; ++rank) {
          const contract::Trace whole = contract::ReadTrace(whole_dir, rank);
          for (const contract::StepRecord& record : contract::ReadTrace(resumed_dir, rank).steps) {
            EXPECT_EQ(record.real->loss_scaler, whole.steps[record.step].real->loss_scaler);
            EXPECT_EQ(record.loss, whole.steps[record.step].loss);
            ASSERT_NO_FATAL_FAILURE(testing::ExpectSameCommAndTensors(record, whole.steps[record.step]));
          }
        }
      }
    }
  }
}

// Roundings depend on it: unlike family exact's, such a run would not go on as the one that saved.
TEST(RealLossScale, ACheckpointOfAnotherScaleIsRefused) {
  CaseData data = MakeFp16Case({2, 1, 1}, {}, 512);
  data.spec.save_steps = {1};
  const auto saved = testing::RunInFreshFolders(data) / "checkpoint-000001";
  data.spec.save_steps = {};
  data.spec.resume = true;
  EXPECT_NO_THROW(testing::RunInFreshFolders(data, saved));
  data.spec.config.loss_scale = 256;
  EXPECT_THROW(testing::RunInFreshFolders(data, saved), contract::Error);
}

}  // namespace
}  // namespace plumbline::optimized
