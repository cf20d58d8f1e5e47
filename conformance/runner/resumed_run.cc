// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/resumed_run.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace plumbline::conformance {
namespace {

RunDigest WithoutFrozenMasters(RunDigest run, const contract::ModelSpec& model) {
  const std::vector<contract::ParameterSpec> parameters = contract::Parameters(model);
  for (StepDigest& step : run.steps) {
    auto& masters = step.tensors[static_cast<int>(contract::TensorKind::kMaster)];
    for (size_t i = 0; i < masters.size(); ++i) {
      if (parameters[i].frozen) masters[i] = {};
    }
  }
  return run;
}

}  // namespace

contract::Case ResumedCase(const contract::Case& base) {
  contract::Case spec = base;
  spec.id += "/resumed";
  spec.save_steps.clear();
  spec.resume = true;
  return spec;
}

contract::Case AfterStep(const contract::Case& base, int64_t saved_step) {
  contract::Case spec = base;
  spec.save_steps.clear();
  spec.first_step = saved_step + 1;
  spec.steps = base.first_step + base.steps - spec.first_step;
  return spec;
}

RunDigest Steps(const RunDigest& run, size_t begin, size_t count) {
  RunDigest part;
  part.steps.assign(run.steps.begin() + static_cast<std::ptrdiff_t>(begin),
                    run.steps.begin() + static_cast<std::ptrdiff_t>(begin + count));
  return part;
}

RealResult CompareResumed(const contract::ModelSpec& model, const RunDigest& whole, const RunDigest& resumed) {
  const size_t count = std::min(resumed.steps.size(), whole.steps.size());
  const RunDigest rest = Steps(whole, whole.steps.size() - count, count);
  return CompareBitwise("save and resume", model, WithoutFrozenMasters(resumed, model),
                        WithoutFrozenMasters(rest, model));
}

StepSight WithFrozenMastersOf(const RealStart& start, const contract::ModelSpec& model, StepSight sight) {
  const std::vector<contract::ParameterSpec> parameters = contract::Parameters(model);
  auto& masters = sight.of(contract::TensorKind::kMaster);
  for (size_t i = 0; i < std::min(masters.size(), parameters.size()); ++i) {
    const std::vector<float>& before = start.state[i].master;
    if (parameters[i].frozen && masters[i].size() == before.size()) masters[i].assign(before.begin(), before.end());
  }
  return sight;
}

}  // namespace plumbline::conformance
