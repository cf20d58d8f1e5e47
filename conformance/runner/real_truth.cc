// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/real_truth.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "conformance/contract/batch_source.h"
#include "conformance/oracle/storage_rounding.h"
#include "conformance/oracle/truth_check.h"
#include "conformance/runner/loss_scalers.h"
#include "conformance/runner/observation.h"

namespace plumbline::conformance {
namespace {

using contract::DType;
using contract::TensorKind;

std::vector<float> ToFloat(const std::vector<double>& values) { return {values.begin(), values.end()}; }

// The state after the step that was seen. Frozen parameters and absent moments are empty.
RealStart StartAfter(const StepSight& sight) {
  const auto of = [&](TensorKind kind, size_t tensor) {
    const auto& tensors = sight.tensors[static_cast<int>(kind)];
    return tensor < tensors.size() ? ToFloat(tensors[tensor]) : std::vector<float>{};
  };
  RealStart start;
  start.num_updates = sight.step + 1;
  start.norm_history = sight.real.norm_history.value_or(contract::NormHistory{});
  for (size_t i = 0; i < sight.tensors[static_cast<int>(TensorKind::kMaster)].size(); ++i) {
    start.state.push_back({of(TensorKind::kMaster, i), of(TensorKind::kMoment, i), of(TensorKind::kSecondMoment, i)});
  }
  return start;
}

// One that has just warmed up, on norms of half of this one with little scatter: a step with about this norm is
// clipped.
contract::NormHistory ClippingHistory(const contract::AdaptiveClipping& rule, double norm) {
  const double deviation = norm / (8 * std::max(1.0, rule.deviations));
  return {rule.warmup_steps, norm / 2, deviation * deviation};
}

std::shared_ptr<const RealStart> Stored(RealStart start, DType storage) {
  for (contract::RealParameterState& entry : start.state) {
    for (float& value : entry.master) value = static_cast<float>(RoundToStorage(value, storage));
  }
  return std::make_shared<const RealStart>(std::move(start));
}

}  // namespace

RealTrajectoryTask::RealTrajectoryTask(const Problem& problem, const PlanOptions& options)
    : spec_(CaseOf(problem, "truth/" + problem.name + "/trajectory", problem.plain, options)),
      fp16_dynamic_(problem.fp16_dynamic) {
  for (int64_t step : InjectedSteps(problem.steps)) {
    if (step > 0) spec_.dump_steps.push_back(step - 1);
  }
}

void RealTrajectoryTask::Take(size_t, const std::filesystem::path& out_dir, const CaseOutcome& outcome) {
  if (outcome.kind != CaseOutcome::Kind::kOk) {
    error_ = spec_.id + ": " + TextOf(outcome);
    return;
  }
  const Observation seen = Observe(spec_, contract::EngineDescription{}, out_dir, outcome);
  error_ = FirstFailure(seen);
  if (!error_.empty()) return;
  losses_ = seen.run->Losses();
  for (const StepDigest& step : seen.run->steps) most_tokens_ = std::max(most_tokens_, step.tokens);
  std::vector<RealStart> starts(1);
  starts.front().state = contract::MakeInitialRealState(spec_.model, spec_.config, spec_.seed);
  for (int64_t step : spec_.dump_steps) {
    const SightResult sight = SeeStep(spec_, out_dir, step);
    if (!sight.sight) {
      error_ = spec_.id + ": " + sight.check.detail;
      return;
    }
    starts.push_back(StartAfter(*sight.sight));
  }
  if (contract::HasNormHistory(spec_.config)) {
    const int64_t last = InjectedSteps(spec_.steps).back();
    const double norm = seen.run->steps[static_cast<size_t>(last)].real->gradient_norm;
    starts.back().norm_history = ClippingHistory(spec_.config.adaptive_clipping, norm);
  }
  for (size_t i = 0; i < starts.size(); ++i) {
    for (DType storage : {DType::kF32, DType::kBF16, DType::kF16}) {
      if (storage == DType::kF16) starts[i].loss_scaler = StepLossScaler(fp16_dynamic_, i);
      starts_[storage].push_back(Stored(starts[i], storage));
    }
  }
}

const RealStarts& RealTrajectoryTask::Starts(DType storage) const {
  static const RealStarts kNone;
  const auto found = starts_.find(storage);
  return found == starts_.end() ? kNone : found->second;
}

RealLineTask::RealLineTask(const contract::Case& base, const RealStarts& starts) {
  for (size_t i = 0; i < starts.size(); ++i) {
    runs_.push_back({StepCase(base, kInjectedSteps[i]), starts[i]});
  }
  sights_.resize(runs_.size());
}

void RealLineTask::Take(size_t index, const std::filesystem::path& out_dir, const CaseOutcome& outcome) {
  if (!error_.empty()) return;
  const contract::Case& spec = runs_[index].spec;
  if (outcome.kind != CaseOutcome::Kind::kOk) {
    error_ = spec.id + ": " + TextOf(outcome);
    return;
  }
  SightResult sight = SeeStep(spec, out_dir, spec.first_step);
  if (!sight.sight) error_ = spec.id + ": " + sight.check.detail;
  sights_[index] = std::move(sight.sight);
}

std::vector<StepSight> RealLineTask::sights() const {
  std::vector<StepSight> sights;
  for (const std::optional<StepSight>& sight : sights_) sights.push_back(sight.value());
  return sights;
}

void RealTruth::AddSkippedStarts() {
  const RealStarts& starts = Starts(DType::kF32);
  const std::vector<int64_t> steps = InjectedSteps(problem_.steps);
  const auto place = std::find(steps.begin(), steps.end(), kSkippedStep);
  if (starts.empty() || place == steps.end()) return;
  const contract::Case spec = CaseOf(problem_, "", problem_.plain, options_);
  skipped_starts_ = MakeSkippedStarts(problem_, spec.seed, source_, *starts[static_cast<size_t>(place - steps.begin())],
                                      kSkippedStep);
}

void RealTruth::MakeLines(const contract::EngineDescription& plain) {
  const auto line = [&](const std::string& name, const contract::RunConfig& config, DType starts) {
    return std::make_unique<RealLineTask>(CaseOf(problem_, "truth/" + problem_.name + "/" + name, config, options_),
                                          Starts(starts));
  };
  std::set<DType> truths = storages_;
  truths.insert(DType::kF32);
  for (DType storage : truths) {
    const std::string type = "-" + std::string(contract::StorageName(storage));
    Lines& lines = lines_[storage];
    // The reference computes in fp64 whatever the storage type; only the states differ.
    lines.truth = line("truth" + type, problem_.plain, storage);
    if (!storages_.contains(storage)) continue;
    lines.plain = line("plain" + type, PlainLayout(problem_, storage), storage);
    lines.other_plain = line("other_plain" + type, OtherPlainLayout(problem_, storage), storage);
    if (!trajectory_.error().empty()) continue;
    // All runs begin at the weights of the whole trajectory, which 16 bits do not hold.
    lines.drift = std::make_unique<DriftTask>(problem_, options_, storage, *Starts(DType::kF32).front(), plain);
  }
  witness_ = line("witness-fp64", PlainLayout(problem_, DType::kF64), DType::kF32);
  AddSkippedStarts();
}

std::vector<RunTask*> RealTruth::truth_lines() {
  std::vector<RunTask*> tasks;
  for (auto& [storage, lines] : lines_) tasks.push_back(lines.truth.get());
  return tasks;
}

std::vector<RunTask*> RealTruth::plain_lines() {
  std::vector<RunTask*> tasks;
  for (DType storage : storages_) {
    const Lines& lines = lines_.at(storage);
    tasks.push_back(lines.plain.get());
    tasks.push_back(lines.other_plain.get());
    if (lines.drift) tasks.push_back(lines.drift.get());
  }
  tasks.push_back(witness_.get());
  return tasks;
}

void RealTruth::Finish() {
  error_ = trajectory_.error();
  for (auto& [storage, lines] : lines_) {
    for (const RealLineTask* line : {lines.truth.get(), lines.plain.get(), lines.other_plain.get()}) {
      if (line && error_.empty()) error_ = line->error();
    }
    if (lines.drift && error_.empty()) error_ = lines.drift->error();
  }
  if (error_.empty()) error_ = witness_->error();
  if (!error_.empty()) return;
  for (DType storage : storages_) {
    const Lines& lines = lines_.at(storage);
    yardsticks_[storage] = {lines.truth->sights(), lines.plain->sights(), lines.other_plain->sights()};
  }
  CheckWitness();
}

void RealTruth::CheckWitness() {
  const RealResult result = CheckTruth(problem_.model, problem_.plain.train_batch_size,
                                       lines_.at(DType::kF32).truth->sights(), witness_->sights());
  truth_check_ = result.check;
  if (truth_check_.outcome != reports::CheckOutcome::kPass) error_ = WhyNoTruth(result);
}

}  // namespace plumbline::conformance
