// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/metamorphic_trial.h"

#include <algorithm>
#include <string>
#include <utility>

#include "conformance/oracle/metamorphic_check.h"
#include "conformance/oracle/metamorphic_guard.h"

namespace plumbline::conformance {
namespace {

using contract::Case;
using reports::CheckOutcome;

contract::Batches BatchesOf(const Case& spec, const contract::TokenSource& source) {
  return contract::MakeBatches(source, spec.model,
                               {spec.seed, spec.first_step, spec.steps, spec.config.train_batch_size});
}

bool IsShifted(MetamorphicRelation relation) {
  return relation == MetamorphicRelation::kShiftedLogits || relation == MetamorphicRelation::kShiftedScores;
}

}  // namespace

MetamorphicTrial::MetamorphicTrial(MetamorphicRelation relation, Case whole,
                                   const contract::EngineDescription& description, const contract::TokenSource& source)
    : relation_(relation),
      whole_(std::move(whole)),
      description_(description),
      made_(MakeMetamorphicRuns(relation, whole_, BatchesOf(whole_, source))),
      seen_(made_.runs.size()) {}

void MetamorphicTrial::Take(size_t index, const std::filesystem::path& out_dir, const CaseOutcome& outcome) {
  const Case& spec = made_.runs[index].spec;
  Seen seen{Observe(spec, description_, out_dir, outcome, index == 0 ? &guard_ : nullptr), std::nullopt};
  const bool ended_well = outcome.kind == CaseOutcome::Kind::kOk;
  if (!ended_well) seen.first_untraced = FirstUntraced(spec, out_dir);
  if (ended_well && !spec.model.is_exact()) seen.sight = SeeStep(spec, out_dir, spec.first_step);
  seen_[index] = std::move(seen);
  if (std::any_of(seen_.begin(), seen_.end(), [](const auto& run) { return !run.has_value(); })) return;
  judgement_ = Judge();
  if (judgement_->engine_failed) {
    lead_ = LeadOfStop(seen_[*judgement_->diverged_run]->first_untraced, judgement_->message);
  } else if (judgement_->divergence) {
    lead_ = Lead{*judgement_->divergence};  // which of the runs is wrong is not known
  }
  for (auto& run : seen_) run.reset();
}

std::vector<RunEnd> MetamorphicTrial::Ends() const {
  std::vector<RunEnd> ends;
  for (size_t i = 0; i < seen_.size(); ++i) {
    ends.push_back({&seen_[i]->observation.outcome, NameOfRun(made_.runs[i].spec.id, whole_.id)});
  }
  return ends;
}

bool MetamorphicTrial::AllSeen() const {
  return std::all_of(seen_.begin(), seen_.end(), [](const std::optional<Seen>& seen) {
    return seen->observation.run && (!seen->sight || seen->sight->sight);
  });
}

Judgement MetamorphicTrial::Judge() {
  if (std::optional<Judgement> worst = JudgeEnds(Ends())) return *std::move(worst);
  Judgement judgement;
  for (const std::optional<Seen>& seen : seen_) {
    for (const reports::CheckRecord& check : seen->observation.checks) JoinCheck(judgement.checks, check);
    if (seen->sight) JoinCheck(judgement.checks, seen->sight->check);
  }
  const std::string name(Name(relation_));
  if (!made_.nothing_changed.empty()) {
    judgement.checks.push_back({"metamorphic", CheckOutcome::kVacuous, 0, name + ": " + made_.nothing_changed});
  } else if (AllSeen()) {  // else the check of a trace or a dump has failed
    RealResult result = Compare();
    judgement.checks.push_back(std::move(result.check));
    judgement.divergence = std::move(result.divergence);
  }
  Settle(judgement);
  if (judgement.verdict != reports::Verdict::kPass) return judgement;
  PlantChanges();
  judgement.checks.push_back(guard_.Check());
  Settle(judgement);
  return judgement;
}

RealResult MetamorphicTrial::Compare() const {
  const std::string name(Name(relation_));
  const contract::ModelSpec& model = whole_.model;
  const auto run = [&](size_t i) -> const RunDigest& { return *seen_[i]->observation.run; };
  const auto step = [&](size_t i) -> const StepSight& { return *seen_[i]->sight->sight; };
  const int64_t batch = whole_.config.train_batch_size;
  if (relation_ == MetamorphicRelation::kSplit) {
    return model.is_exact() ? CheckSplitRuns(model, run(0), run(1), run(2))
                            : CheckSplitSteps(model, batch, step(0), step(1), step(2));
  }
  if (model.is_exact()) return CheckSameRuns(name, model, run(0), run(1));
  if (relation_ == MetamorphicRelation::kScaled) return CheckScaledSteps(model, made_.exponents, step(0), step(1));
  if (IsShifted(relation_)) return CheckShiftedSteps(name, model, batch, made_.shift, step(0), step(1));
  return CheckNearSteps(name, model, batch, step(0), step(1));
}

void MetamorphicTrial::PlantChanges() {
  const std::string name(Name(relation_));
  const contract::ModelSpec& model = whole_.model;
  const auto run = [&](size_t i) -> const RunDigest& { return *seen_[i]->observation.run; };
  const auto step = [&](size_t i) -> const StepSight& { return *seen_[i]->sight->sight; };
  const int64_t batch = whole_.config.train_batch_size;
  if (relation_ == MetamorphicRelation::kSplit) {
    if (model.is_exact()) return GuardSplitRuns(model, run(0), run(1), run(2), guard_);
    return GuardSplitSteps(model, batch, step(0), step(1), step(2), guard_);
  }
  if (model.is_exact()) return GuardSameRuns(name, model, run(0), run(1), guard_);
  if (relation_ == MetamorphicRelation::kScaled) {
    return GuardScaledSteps(model, made_.exponents, step(0), step(1), guard_);
  }
  if (IsShifted(relation_)) return GuardShiftedSteps(name, model, batch, made_.shift, step(0), step(1), guard_);
  return GuardNearSteps(name, model, batch, step(0), step(1), guard_);
}

}  // namespace plumbline::conformance
