// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/real_runs.h"

#include <algorithm>
#include <iterator>

#include "conformance/cases/layouts.h"
#include "conformance/cases/lone_case.h"
#include "conformance/runner/loss_scalers.h"
#include "conformance/runner/resumed_run.h"

namespace plumbline::conformance {

namespace {

void FixLossScale(int64_t scale, contract::RunConfig& config) {
  config.loss_scale = scale;
  config.dynamic_loss_scale = {};
}

}  // namespace

std::vector<int64_t> InjectedSteps(int64_t steps) {
  return {std::begin(kInjectedSteps), std::lower_bound(std::begin(kInjectedSteps), std::end(kInjectedSteps), steps)};
}

int64_t NumSavedSteps(const contract::Case& base) { return std::max<int64_t>(base.steps / 2, 1); }

bool HasResumedHalf(const contract::Case& base) { return NumSavedSteps(base) < base.steps; }

contract::Case StepCase(const contract::Case& base, int64_t step) {
  contract::Case spec = base;
  spec.id += "/step" + std::to_string(step);
  spec.first_step = step;
  spec.steps = 1;
  spec.dump_steps = {step};
  return spec;
}

contract::Case SkippedCase(const contract::Case& base, const std::string& value, bool is_followed, bool save) {
  contract::Case spec = StepCase(base, kSkippedStep);
  spec.id += "-" + value;
  if (is_followed) {
    spec.steps = 2;
    spec.dump_steps.push_back(kSkippedStep + 1);
  }
  if (save) spec.save_steps = {kSkippedStep};
  return spec;
}

contract::Case OverflowCase(const contract::Case& base) {
  contract::Case spec = StepCase(base, kSkippedStep);
  spec.id += "-overflow";
  spec.steps = 3;
  spec.dump_steps = {kSkippedStep, kSkippedStep + 1};
  return spec;
}

contract::Case ResumedSkippedCase(const contract::Case& skipped) {
  contract::Case spec = ResumedCase(skipped);
  spec.dump_steps = {kSkippedStep + 1};
  return spec;
}

contract::Case UnroundedCase(const contract::Case& base) {
  contract::Case spec = StepCase(base, InjectedSteps(base.steps).back());
  spec.id += "-unrounded";
  return spec;
}

contract::Case SavingCase(const contract::Case& base, bool save) {
  contract::Case spec = base;
  spec.id += "/again";
  spec.steps = NumSavedSteps(base);
  if (save) spec.save_steps = {spec.steps - 1};
  return spec;
}

contract::Case RelatedCase(const contract::Case& base) {
  contract::Case spec = base;
  spec.id += "/related";
  spec.steps = NumSavedSteps(base);
  spec.config = RelatedLayout(base.config);
  return spec;
}

contract::RunConfig RelatedLayout(const contract::RunConfig& config) {
  contract::RunConfig related = config;
  const contract::RunConfig defaults;
  // Stages 0 and 1 sum in one order, and 2 and 3; with one micro-batch all do.
  const auto least = [&](int64_t stage) { return config.accumulation_steps > 1 && stage >= 2 ? 2 : 0; };
  related.zero_stage = least(config.zero_stage);
  for (int64_t& stage : related.layer_stages) stage = least(stage);
  if (config.accumulation_steps == 1) related.layer_stages.clear();
  related.reduce_bucket_elems = defaults.reduce_bucket_elems;
  related.overlap_comm = false;
  related.prefetch_bucket_elems = defaults.prefetch_bucket_elems;
  related.persistence_threshold_elems = defaults.persistence_threshold_elems;
  related.max_live_elems = defaults.max_live_elems;
  related.hints = defaults.hints;
  return related;
}

contract::RunConfig PlainLayout(const Problem& problem, contract::DType storage) {
  contract::RunConfig config = problem.plain;
  StoreIn(storage, problem, config);
  if (contract::HasDynamicLossScale(config)) FixLossScale(2 * kLargestLossScale, config);
  return config;
}

contract::RunConfig OtherPlainLayout(const Problem& problem, contract::DType storage) {
  contract::RunConfig config = PlainLayout(problem, storage);
  config.accumulation_steps = kOtherPlainMicroBatches;
  config.micro_batch_size = config.train_batch_size / kOtherPlainMicroBatches;
  if (storage == contract::DType::kF16 && problem.fp16_loss_scale == 0) FixLossScale(kSmallestLossScale, config);
  return config;
}

}  // namespace plumbline::conformance
