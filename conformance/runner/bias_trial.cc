// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/bias_trial.h"

#include <algorithm>
#include <utility>

#include "conformance/oracle/bias_check.h"

namespace plumbline::conformance {

using reports::CheckOutcome;

BiasTrial::BiasTrial(const contract::Case& base, const contract::EngineDescription& description, const BiasTruth& truth)
    : id_(base.id), model_(base.model), description_(description), truth_(truth) {
  for (int64_t i = 0; i < truth.num_steps(); ++i) {
    runs_.push_back({UnrelatedStep(base, i, base.config.storage), std::nullopt, std::nullopt});
  }
}

std::vector<TaskRun> BiasTrial::Runs() const {
  std::vector<TaskRun> runs;
  for (const Run& run : runs_) runs.push_back(run.task_run);
  return runs;
}

void BiasTrial::Take(size_t index, const std::filesystem::path& out_dir, const CaseOutcome& outcome) {
  Run& run = runs_[index];
  const contract::Case& spec = run.task_run.spec;
  run.seen = Observe(spec, description_, out_dir, outcome, index == 0 ? &guard_ : nullptr);
  if (outcome.kind == CaseOutcome::Kind::kOk) run.sight = SeeStep(spec, out_dir, spec.first_step);
  if (outcome.kind != CaseOutcome::Kind::kOk) run.first_untraced = FirstUntraced(spec, out_dir);
  if (run.sight && run.sight->sight) KeepGradients(*run.sight->sight);
  if (std::any_of(runs_.begin(), runs_.end(), [](const Run& other) { return !other.seen; })) return;
  judgement_ = Judge();
  if (judgement_->verdict == reports::Verdict::kPass) AddGuard(*judgement_);
  lead_ = MakeLead();
  for (Run& seen : runs_) {
    seen.seen.reset();
    seen.sight.reset();
  }
}

std::vector<StepSight> BiasTrial::Sights() const {
  std::vector<StepSight> sights;
  for (const Run& run : runs_) sights.push_back(*run.sight->sight);
  return sights;
}

std::vector<RunEnd> BiasTrial::Ends() const {
  std::vector<RunEnd> ends;
  for (const Run& run : runs_) ends.push_back({&run.seen->outcome, NameOfRun(run.task_run.spec.id, id_)});
  return ends;
}

Judgement BiasTrial::Judge() const {
  if (std::optional<Judgement> worst = JudgeEnds(Ends())) return *std::move(worst);
  Judgement judgement;
  if (!truth_.error().empty()) {
    judgement.no_truth = true;
    judgement.message = "there is no truth: " + truth_.error();
    return judgement;
  }
  judgement.checks.push_back(truth_.truth_check());
  bool whole = true;
  for (const Run& run : runs_) {
    for (const reports::CheckRecord& check : run.seen->checks) JoinCheck(judgement.checks, check);
    JoinCheck(judgement.checks, run.sight->check);
    if (run.sight->sight) continue;
    // Ranks that hold different things are seen where the step is put together.
    if (whole) {
      judgement.divergence = Divergence{run.task_run.spec.first_step, "dump", "", 0, run.sight->check.detail};
      judgement.diverged_run = static_cast<size_t>(&run - runs_.data());
    }
    whole = false;
  }
  if (whole) {
    RealResult bias = CheckBias(model_, truth_.steps(), Sights());
    judgement.checks.push_back(std::move(bias.check));
    judgement.divergence = std::move(bias.divergence);
  }
  Settle(judgement);
  return judgement;
}

// A bias is of all steps together: the record has its tensor, and there is no run to look at again.
std::optional<Lead> BiasTrial::MakeLead() const {
  if (judgement_->engine_failed) {
    return LeadOfStop(runs_[*judgement_->diverged_run].first_untraced, judgement_->message);
  }
  if (!judgement_->divergence) return std::nullopt;
  Lead lead{*judgement_->divergence};
  if (judgement_->diverged_run) lead.run = runs_[*judgement_->diverged_run].task_run;
  return lead;
}

void BiasTrial::AddGuard(Judgement& judgement) {
  GuardBias(model_, truth_.steps(), Sights(), guard_);
  judgement.checks.push_back(guard_.Check());
  Settle(judgement);
}

}  // namespace plumbline::conformance
