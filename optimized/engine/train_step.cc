// SPDX-License-Identifier: Apache-2.0
// See train_step.h.
#include "optimized/engine/train_step.h"

#include <chrono>
#include <span>
#include <string>

#include "conformance/contract/error.h"
#include "conformance/contract/instrumentation.h"
#include "kernels/scale/scale.h"
#include "optimized/engine/integrality.h"
#include "optimized/optimizer/history_clipping.h"
#include "optimized/optimizer/loss_scaler.h"
#include "optimized/optimizer/parameter_groups.h"
#include "optimized/partition/sample_plan.h"

namespace plumbline::optimized {
namespace {

using contract::Category;
using contract::ScopedRange;

constexpr int kScalarStream = 0;

// Of the samples whose tokens begin at `begin`; none where all have all positions.
std::span<const int32_t> LocalLengths(const contract::Batches& batches, int64_t begin, int64_t samples) {
  if (batches.lengths.empty()) return {};
  return std::span(batches.lengths).subspan(begin / batches.positions, samples);
}

MicroBatch LocalMicroBatch(const Training& training, int64_t step, int64_t accumulation_index) {
  const contract::Batches& batches = training.data->batches;
  const contract::RunConfig& config = training.data->spec.config;
  const int64_t samples = config.micro_batch_size;
  const int64_t first_sample =
      FirstSample(accumulation_index, training.communicator->rank(), config.data_degree, samples);
  const int64_t begin = batches.Index(step, first_sample, 0);
  const auto elems = static_cast<size_t>(samples * batches.positions);
  return {step,
          first_sample,
          std::span(batches.tokens).subspan(begin, elems),
          std::span(batches.labels).subspan(begin, elems),
          std::span(batches.loss_weights).subspan(begin, elems),
          LocalLengths(batches, begin, samples)};
}

// Posts the sum over ranks of the weighted tokens of the step; needed before the first loss.
void PostTokenCount(Training& training, int64_t step) {
  int64_t local_tokens = 0;
  for (int64_t a = 0; a < training.data->spec.config.accumulation_steps; ++a) {
    for (const int32_t weight : LocalMicroBatch(training, step, a).loss_weights) local_tokens += weight != 0 ? 1 : 0;
  }
  training.tokens = static_cast<double>(local_tokens);
  training.tokens_reduced = training.communicator->AllReduce({&training.tokens, 1, contract::DType::kF64},
                                                             {"tokens", training.timeout, kScalarStream});
}

// 1 / N of the global batch. Exact in family exact, where N is a power of two.
float InverseTokens(Training& training, int64_t step) {
  training.tokens_reduced.Wait();
  if (!(training.tokens >= 1)) {
    contract::Fail(contract::ErrorCode::kInvalidArgument,
                   "batches: step " + std::to_string(step) + " has no weighted token");
  }
  return static_cast<float>(1.0 / training.tokens);
}

// Of this step: a dynamic one moves after the last use of it. A power of two, and a float whatever its size.
float LossScaleOf(const Training& training) {
  return static_cast<float>(LossScale(training.data->spec.config, training.loss_scaler));
}

void RunMicroBatch(Training& training, int64_t step, int64_t accumulation_index, const PhaseMark& mark) {
  const MicroBatch micro_batch = LocalMicroBatch(training, step, accumulation_index);
  const bool is_first = accumulation_index == 0;
  const bool is_last = accumulation_index + 1 == training.data->spec.config.accumulation_steps;
  const std::span<const WriteMode> modes = training.reducer->BeginMicroBatch(is_first, is_last);
  {
    const ScopedRange range(Category::kCompute, contract::range::kForward);
    mark("forward");
    training.model->Forward(micro_batch);
  }
  const ScopedRange range(Category::kCompute, contract::range::kBackward);
  mark("backward");
  training.loss += training.model->Loss(InverseTokens(training, step), LossScaleOf(training));
  training.model->Backward(modes, [&](int64_t parameter) { training.reducer->Ready(parameter); });
}

void PostLoss(Training& training) {
  training.loss_reduced = training.communicator->AllReduce({&training.loss, 1, contract::DType::kF64},
                                                           {"loss", training.timeout, kScalarStream});
}

void FinishReduction(Training& training, const PhaseMark& mark) {
  const ScopedRange range(Category::kComm, contract::range::kReduce);
  mark("reduce");
  training.reducer->EndMicroBatch();
}

// Gradients arrive as those of the scaled loss. Everybody after this sees them unscaled; what has overflowed by then,
// in whatever type, is infinite or NaN and stays so.
void Unscale(const Training& training) {
  const float loss_scale = LossScaleOf(training);
  if (loss_scale == 1) return;
  const float factor = 1.0f / loss_scale;  // exact: a power of two
  for (const ShardSlice& slice : training.shard.slices) {
    const std::span<float> gradient = training.reducer->Complete(slice);
    kernels::Scale<float>(factor, gradient, gradient);
  }
}

void CheckGradients(const Training& training, int64_t step) {
  for (const ShardSlice& slice : training.shard.slices) {
    CheckIntegral(training.reducer->Complete(slice),
                  {training.data->parameters[slice.parameter].name, slice.begin, step, training.communicator->rank()});
  }
}

void UpdateExact(Training& training, int64_t step) {
  Unscale(training);
  CheckGradients(training, step);
  training.num_updates = step + 1;  // no step is skipped
  training.optimizer->Step(
      {.step = step, .t = training.num_updates},
      [&](const ShardSlice& slice) { return training.reducer->Complete(slice); },
      [&](const ShardSlice& slice) { return training.weights->Updated(slice); });
}

// The factor of all that is clipped; 1 where units have their own.
double ClipFactor(const Training& training, double norm) {
  const contract::RunConfig& config = training.data->spec.config;
  if (!contract::HasNormHistory(config)) return ClipCoefficient(config.gradient_clipping, norm);
  return HistoryCoefficient(config.adaptive_clipping, training.norm_history, norm);
}

void RememberNorm(Training& training, double norm) {
  const contract::RunConfig& config = training.data->spec.config;
  if (!contract::HasNormHistory(config)) return;
  training.norm_history = Remember(config.adaptive_clipping, training.norm_history, norm);
}

void MoveLossScale(Training& training, bool skipped) {
  const contract::RunConfig& config = training.data->spec.config;
  if (!contract::HasDynamicLossScale(config)) return;
  training.loss_scaler = AfterStep(config.dynamic_loss_scale, training.loss_scaler, skipped);
}

// A step that is skipped makes the calls of any other.
void SkipUpdate(Training& training) {
  if (training.unit_clipping) training.unit_clipping->Skip();
  training.optimizer->Skip();
}

// All ranks have the same norm, and so they clip alike and skip together.
void UpdateReal(Training& training, int64_t step, StepResult& result) {
  Unscale(training);
  const auto gradient = [&](const ShardSlice& slice) { return training.reducer->Complete(slice); };
  const GradientNorm::Result norm = training.norm->Compute(gradient);
  result.gradient_norm = norm.norm;
  result.skipped = !norm.all_finite;
  MoveLossScale(training, result.skipped);
  if (result.skipped) return SkipUpdate(training);
  if (training.unit_clipping) {
    training.unit_clipping->Compute(gradient,
                                    [&](const ShardSlice& slice) { return training.optimizer->Master(slice); });
  }
  const double factor = ClipFactor(training, norm.norm);
  RememberNorm(training, norm.norm);
  training.num_updates += 1;
  training.optimizer->Step(
      {.step = step, .t = training.num_updates, .gradient_scale = factor, .units = training.unit_clipping.get()},
      gradient, [&](const ShardSlice& slice) { return training.weights->Updated(slice); });
}

void Update(Training& training, int64_t step, const PhaseMark& mark, StepResult& result) {
  const ScopedRange range(Category::kOptimizer, contract::range::kOptimizerStep);
  mark("step");
  if (training.norm) {
    UpdateReal(training, step, result);
  } else {
    UpdateExact(training, step);
  }
}

void PublishWeights(Training& training) {
  const ScopedRange range(Category::kComm, contract::range::kGatherWeights);
  training.weights->Publish();
}

}  // namespace

StepResult TrainStep(Training& training, int64_t step, const PhaseMark& mark) {
  const ScopedRange range(Category::kCompute, contract::range::kStep);
  const auto begin = std::chrono::steady_clock::now();
  const int64_t accumulation_steps = training.data->spec.config.accumulation_steps;
  training.loss = 0;
  training.memory_ledger.BeginStep();
  training.weights->BeginStep();
  PostTokenCount(training, step);
  for (int64_t a = 0; a < accumulation_steps; ++a) {
    RunMicroBatch(training, step, a, mark);
    if (a + 1 == accumulation_steps) PostLoss(training);
    FinishReduction(training, mark);
  }
  StepResult result;
  Update(training, step, mark, result);
  PublishWeights(training);
  training.loss_reduced.Wait();
  training.memory_guards.Check();
  const std::chrono::duration<double, std::micro> step_time = std::chrono::steady_clock::now() - begin;
  result.loss = training.loss;
  result.tokens = static_cast<int64_t>(training.tokens);
  result.timings.step_us = step_time.count();
  return result;
}

}  // namespace plumbline::optimized
