// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/exact_trial.h"

#include <algorithm>

#include "conformance/oracle/exact_check.h"
#include "conformance/oracle/sensitivity_check.h"
#include "conformance/runner/resumed_run.h"
#include "conformance/runner/run_ends.h"

namespace plumbline::conformance {
namespace {

// One of them would show a wrong number; several, one that is used in the next step only, or a count of steps.
constexpr int64_t kNumResumed = 5;  // at most half of the run

}  // namespace

std::vector<TaskRun> ExactTruthTask::Runs() const {
  std::vector<TaskRun> runs;
  for (const TruthRun& run : runs_) runs.push_back({run.spec});
  return runs;
}

void ExactTruthTask::Take(size_t index, const std::filesystem::path& out_dir, const CaseOutcome& outcome) {
  out_dirs_[index] = out_dir;
  if (outcome.kind == CaseOutcome::Kind::kOk || first_error_) return;
  first_error_ = runs_[index].spec.id + ": " + TextOf(outcome);
}

void ExactTruthTask::Finish() {
  std::vector<std::filesystem::path> dirs;
  for (size_t i = 0; i < runs_.size(); ++i) dirs.push_back(out_dirs_[i]);
  truth_ = ReadTruth(runs_, dirs, first_error_);
}

ExactTrial::ExactTrial(contract::Case spec, const contract::EngineDescription& description, const ExactTruthTask& truth)
    : spec_(std::move(spec)), description_(description), truth_(truth) {
  const int64_t num_resumed = std::min(kNumResumed, spec_.steps / 2);
  const bool saves = description_.Has("save") && num_resumed > 0;
  if (saves) spec_.save_steps = {spec_.steps - 1 - num_resumed};
  runs_.push_back({{spec_}, spec_});
  if (saves) runs_.push_back({{ResumedCase(spec_), nullptr, 0}, AfterStep(spec_, spec_.save_steps.back())});
}

std::vector<TaskRun> ExactTrial::Runs() const {
  std::vector<TaskRun> runs;
  for (const Run& run : runs_) runs.push_back(run.task_run);
  return runs;
}

void ExactTrial::Take(size_t index, const std::filesystem::path& out_dir, const CaseOutcome& outcome) {
  Run& run = runs_[index];
  run.seen = Observe(run.traced, description_, out_dir, outcome, index == 0 ? &guard_ : nullptr);
  if (outcome.kind != CaseOutcome::Kind::kOk) run.first_untraced = FirstUntraced(run.traced, out_dir);
  if (std::any_of(runs_.begin(), runs_.end(), [](const Run& other) { return !other.seen; })) return;
  judgement_ = Judge();
  lead_ = MakeLead();
  for (Run& seen : runs_) seen.seen.reset();
}

Judgement ExactTrial::Judge() {
  const Observation& whole = *runs_.front().seen;
  Judgement judgement = JudgeExact(spec_, truth_.truth(), whole);
  if (judgement.verdict == reports::Verdict::kPass) {
    GuardExact(spec_.model, truth_.truth().run, *whole.run, guard_);
    judgement.checks.push_back(guard_.Check());
    Settle(judgement);
  }
  if (runs_.size() == 1 || !whole.run) return judgement;
  return WithResumed(std::move(judgement), spec_.model, *whole.run, *runs_.back().seen);
}

std::optional<Lead> ExactTrial::MakeLead() const {
  const size_t run = judgement_->diverged_run.value_or(0);
  if (judgement_->engine_failed) return LeadOfStop(runs_[run].first_untraced, judgement_->message);
  if (!judgement_->divergence) return std::nullopt;
  const TaskRun& whole = runs_.front().task_run;
  if (run == 0) return Lead{*judgement_->divergence, whole};
  return LeadOfResumed(*judgement_->divergence, runs_[run].task_run, whole, whole);
}

Judgement WithResumed(Judgement judgement, const contract::ModelSpec& model, const RunDigest& whole,
                      const Observation& resumed) {
  constexpr size_t kResumed = 1;
  if (judgement.verdict != reports::Verdict::kPass && judgement.verdict != reports::Verdict::kVacuous) return judgement;
  const CaseOutcome whole_outcome;  // it was traced to its end
  if (std::optional<Judgement> ended = JudgeEnds({{&whole_outcome}, {&resumed.outcome, "resumed", 0}})) {
    return *std::move(ended);
  }
  for (const reports::CheckRecord& check : resumed.checks) JoinCheck(judgement.checks, check);
  if (resumed.run) {
    RealResult relation = CompareResumed(model, whole, *resumed.run);
    judgement.checks.push_back(std::move(relation.check));
    judgement.divergence = std::move(relation.divergence);
    if (judgement.divergence) judgement.diverged_run = kResumed;
  }
  Settle(judgement);
  return judgement;
}

Judgement JudgeExact(const contract::Case& spec, const Truth& truth, const Observation& seen) {
  const reports::CheckRecord certificate =
      CheckCertificate(truth.certificate, spec.config.storage, spec.config.loss_scale);
  const bool certified = certificate.outcome == reports::CheckOutcome::kPass;
  // Where a right engine may round nothing is demanded, not even that it goes on.
  const bool may_stop = seen.outcome.kind == CaseOutcome::Kind::kError && truth.error.empty() && !certified;
  if (seen.outcome.kind != CaseOutcome::Kind::kOk && !may_stop) return FromOutcome(seen.outcome);
  Judgement judgement;
  if (!truth.error.empty()) {
    judgement.no_truth = true;
    judgement.message = "the reference gave no truth: " + truth.error;
    return judgement;
  }
  judgement.checks = seen.checks;
  if (seen.run && certified) {
    ExactResult exact = CompareExactly(spec.model, truth.run, *seen.run);
    judgement.checks.push_back(std::move(exact.check));
    judgement.divergence = std::move(exact.divergence);
  }
  judgement.checks.push_back(certificate);
  judgement.checks.insert(judgement.checks.end(), truth.checks.begin(), truth.checks.end());
  Settle(judgement);
  // What was not compared with the truth passes by silence: never.
  if (judgement.verdict == reports::Verdict::kPass && !seen.run) judgement.verdict = reports::Verdict::kVacuous;
  return judgement;
}

}  // namespace plumbline::conformance
