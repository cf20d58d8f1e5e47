// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/exact_trial.h"

#include "conformance/oracle/exact_check.h"
#include "conformance/oracle/sensitivity_check.h"

namespace plumbline::conformance {

std::vector<TaskRun> ExactTruthTask::Runs() const {
  std::vector<TaskRun> runs;
  for (const TruthRun& run : runs_) runs.push_back({run.spec});
  return runs;
}

void ExactTruthTask::Take(size_t index, const std::filesystem::path& out_dir, const CaseOutcome& outcome) {
  out_dirs_[index] = out_dir;
  if (outcome.kind == CaseOutcome::Kind::kOk || first_error_) return;
  first_error_ = runs_[index].spec.id + ": " + std::string(Name(outcome.kind)) + " " + outcome.message;
}

void ExactTruthTask::Finish() {
  std::vector<std::filesystem::path> dirs;
  for (size_t i = 0; i < runs_.size(); ++i) dirs.push_back(out_dirs_[i]);
  truth_ = ReadTruth(runs_, dirs, first_error_);
}

void ExactTrial::Take(size_t, const std::filesystem::path& out_dir, const CaseOutcome& outcome) {
  Guard guard;
  const Observation seen = Observe(spec_, description_, out_dir, outcome, &guard);
  judgement_ = JudgeExact(spec_, truth_.truth(), seen);
  if (judgement_->divergence) lead_ = Lead{*judgement_->divergence, TaskRun{spec_}};
  if (judgement_->engine_failed) {
    lead_ = Lead{{FirstUntraced(spec_, out_dir), "engine", "", 0, judgement_->message}};
  }
  if (judgement_->verdict != reports::Verdict::kPass) return;
  GuardExact(spec_.model, truth_.truth().run, *seen.run, guard);
  judgement_->checks.push_back(guard.Check());
  Settle(*judgement_);
}

Judgement JudgeExact(const contract::Case& spec, const Truth& truth, const Observation& seen) {
  if (seen.outcome.kind != CaseOutcome::Kind::kOk) return FromOutcome(seen.outcome);
  Judgement judgement;
  if (!truth.error.empty()) {
    judgement.no_truth = true;
    judgement.message = "the reference gave no truth: " + truth.error;
    return judgement;
  }
  judgement.checks = seen.checks;
  if (seen.run) {
    ExactResult exact = CompareExactly(spec.model, truth.run, *seen.run);
    judgement.checks.push_back(std::move(exact.check));
    judgement.divergence = std::move(exact.divergence);
  }
  judgement.checks.push_back(CheckCertificate(truth.certificate, spec.config.storage));
  judgement.checks.insert(judgement.checks.end(), truth.checks.begin(), truth.checks.end());
  Settle(judgement);
  // What was not compared with the truth passes by silence: never.
  if (judgement.verdict == reports::Verdict::kPass && !seen.run) judgement.verdict = reports::Verdict::kVacuous;
  return judgement;
}

}  // namespace plumbline::conformance
