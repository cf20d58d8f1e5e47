// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/unrelated_steps.h"

#include <utility>

#include "conformance/contract/batch_source.h"
#include "conformance/contract/digest.h"
#include "conformance/contract/trace.h"
#include "conformance/oracle/storage_rounding.h"

namespace plumbline::conformance {

TaskRun UnrelatedStep(const contract::Case& base, int64_t number, contract::DType storage) {
  TaskRun run{base};
  run.spec.id += "/unrelated" + std::to_string(number);
  run.spec.seed = contract::Mix(base.seed + static_cast<uint64_t>(number) + 1);
  run.spec.first_step = 0;
  run.spec.steps = 1;
  run.spec.dump_steps = {0};
  auto start = std::make_shared<RealStart>();
  start->state = contract::MakeInitialRealState(base.model, base.config, run.spec.seed);
  for (contract::RealParameterState& entry : start->state) {
    for (float& value : entry.master) value = static_cast<float>(RoundToStorage(value, storage));
  }
  run.start = std::move(start);
  return run;
}

void KeepGradients(StepSight& sight) {
  for (int kind = 0; kind < contract::kNumTensorKinds; ++kind) {
    if (kind != static_cast<int>(contract::TensorKind::kGradient)) sight.tensors[kind] = {};
  }
}

UnrelatedStepsTask::UnrelatedStepsTask(const contract::Case& base, int64_t first, int64_t count,
                                       contract::DType storage)
    : sights_(static_cast<size_t>(count)) {
  for (int64_t i = 0; i < count; ++i) runs_.push_back(UnrelatedStep(base, first + i, storage));
}

void UnrelatedStepsTask::Take(size_t index, const std::filesystem::path& out_dir, const CaseOutcome& outcome) {
  if (!error_.empty()) return;
  const contract::Case& spec = runs_[index].spec;
  if (outcome.kind != CaseOutcome::Kind::kOk) {
    error_ = spec.id + ": " + TextOf(outcome);
    return;
  }
  SightResult sight = SeeStep(spec, out_dir, spec.first_step);
  if (!sight.sight) {
    error_ = spec.id + ": " + sight.check.detail;
    return;
  }
  KeepGradients(*sight.sight);
  sights_[index] = std::move(sight.sight);
}

std::vector<StepSight> UnrelatedStepsTask::TakeSights() {
  std::vector<StepSight> sights;
  for (std::optional<StepSight>& sight : sights_) sights.push_back(std::move(sight.value()));
  return sights;
}

}  // namespace plumbline::conformance
