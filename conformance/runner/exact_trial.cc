// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/exact_trial.h"

#include <algorithm>

#include "conformance/oracle/exact_check.h"
#include "conformance/oracle/sensitivity_check.h"
#include "conformance/runner/resumed_run.h"

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
  if (description_.Has("save") && num_resumed > 0) spec_.save_steps = {spec_.steps - 1 - num_resumed};
}

std::vector<TaskRun> ExactTrial::Runs() const {
  std::vector<TaskRun> runs = {{spec_}};
  if (!spec_.save_steps.empty()) runs.push_back({ResumedCase(spec_), nullptr, 0});
  return runs;
}

void ExactTrial::Take(size_t index, const std::filesystem::path& out_dir, const CaseOutcome& outcome) {
  const bool saves = !spec_.save_steps.empty();
  if (outcome.kind != CaseOutcome::Kind::kOk && first_untraced_ < 0) first_untraced_ = FirstUntraced(spec_, out_dir);
  if (index == 0) {
    whole_ = Observe(spec_, description_, out_dir, outcome, &guard_);
  } else {
    resumed_ = Observe(AfterStep(spec_, spec_.save_steps.back()), description_, out_dir, outcome);
  }
  if (!whole_ || (saves && !resumed_)) return;
  Judgement judgement = JudgeExact(spec_, truth_.truth(), *whole_);
  if (judgement.verdict == reports::Verdict::kPass) {
    GuardExact(spec_.model, truth_.truth().run, *whole_->run, guard_);
    judgement.checks.push_back(guard_.Check());
    Settle(judgement);
  }
  if (judgement.divergence) lead_ = Lead{*judgement.divergence, TaskRun{spec_}};
  if (judgement.engine_failed) lead_ = Lead{{first_untraced_, "engine", "", 0, judgement.message}};
  if (saves && whole_->run) judgement = WithResumed(std::move(judgement), spec_.model, *whole_->run, *resumed_);
  if (!lead_ && judgement.divergence) {
    lead_ = Lead{*judgement.divergence, TaskRun{ResumedCase(spec_)}, TaskRun{spec_}, TaskRun{spec_}};
  } else if (!lead_ && judgement.engine_failed) {
    lead_ = Lead{{first_untraced_, "engine", "", 0, judgement.message}};
  }
  judgement_ = std::move(judgement);
  whole_.reset();
  resumed_.reset();
}

Judgement WithResumed(Judgement judgement, const contract::ModelSpec& model, const RunDigest& whole,
                      const Observation& resumed) {
  if (judgement.verdict != reports::Verdict::kPass && judgement.verdict != reports::Verdict::kVacuous) return judgement;
  if (resumed.outcome.kind != CaseOutcome::Kind::kOk) {
    Judgement ended = FromOutcome(resumed.outcome);
    ended.message = "run resumed: " + ended.message;
    return ended;
  }
  for (const reports::CheckRecord& check : resumed.checks) JoinCheck(judgement.checks, check);
  if (resumed.run) {
    RealResult relation = CompareResumed(model, whole, *resumed.run);
    judgement.checks.push_back(std::move(relation.check));
    judgement.divergence = std::move(relation.divergence);
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
