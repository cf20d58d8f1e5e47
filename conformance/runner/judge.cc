// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/judge.h"

#include "conformance/oracle/sensitivity_check.h"

namespace plumbline::conformance {
namespace {

using reports::CheckOutcome;
using reports::CheckRecord;
using reports::Verdict;

Verdict VerdictOf(const std::vector<CheckRecord>& checks) {
  bool vacuous = checks.empty();
  for (const CheckRecord& check : checks) {
    if (check.outcome == CheckOutcome::kFail) return Verdict::kFail;
    vacuous |= check.outcome == CheckOutcome::kVacuous;
  }
  return vacuous ? Verdict::kVacuous : Verdict::kPass;
}

// The finding that leads a reader to the cause: values before replicas before counts.
std::string MessageOf(const std::vector<CheckRecord>& checks, CheckOutcome outcome) {
  for (const char* name : {"trace", "exact", "replicas", "collectives", "ledger", "memory"}) {
    for (const CheckRecord& check : checks) {
      if (check.name == name && check.outcome == outcome) return check.detail;
    }
  }
  for (const CheckRecord& check : checks) {
    if (check.outcome == outcome) return check.name + ": " + check.detail;
  }
  return "";
}

Judgement JudgeOutcome(const CaseOutcome& outcome) {
  Judgement judgement;
  judgement.message = outcome.message;
  switch (outcome.kind) {
    case CaseOutcome::Kind::kUnsupported:
      judgement.verdict = Verdict::kUnsupported;
      break;
    case CaseOutcome::Kind::kInterrupted:
      judgement.verdict = Verdict::kNotRun;
      break;
    default:
      judgement.verdict = Verdict::kError;
      judgement.engine_failed = outcome.kind == CaseOutcome::Kind::kError ||
                                outcome.kind == CaseOutcome::Kind::kCrashed ||
                                outcome.kind == CaseOutcome::Kind::kProtocol;
  }
  return judgement;
}

}  // namespace

Judgement Judge(const contract::Case& spec, const Truth& truth, const Observation& seen) {
  if (seen.outcome.kind != CaseOutcome::Kind::kOk) return JudgeOutcome(seen.outcome);
  Judgement judgement;
  if (!truth.error.empty()) {
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
  judgement.verdict = VerdictOf(judgement.checks);
  // What was not compared with the truth passes by silence: never.
  if (judgement.verdict == Verdict::kPass && !seen.run) judgement.verdict = Verdict::kVacuous;
  if (judgement.verdict == Verdict::kFail) judgement.message = MessageOf(judgement.checks, CheckOutcome::kFail);
  if (judgement.verdict == Verdict::kVacuous) judgement.message = MessageOf(judgement.checks, CheckOutcome::kVacuous);
  return judgement;
}

}  // namespace plumbline::conformance
