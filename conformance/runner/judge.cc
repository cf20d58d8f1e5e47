// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/judge.h"

#include <algorithm>
#include <utility>

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

// The finding that leads a reader to the cause: values before relations, these before replicas, these before counts.
std::string MessageOf(const std::vector<CheckRecord>& checks, CheckOutcome outcome) {
  for (const char* name :
       {"trace", "dump", "exact", "gradient", "bias", "loss", "update", "skip", "scale", "accumulation", "relation",
        "metamorphic", "replicas", "collectives", "ledger", "memory", "trajectory"}) {
    for (const CheckRecord& check : checks) {
      if (check.name == name && check.outcome == outcome) return check.detail;
    }
  }
  for (const CheckRecord& check : checks) {
    if (check.outcome == outcome) return check.name + ": " + check.detail;
  }
  return "";
}

int Weight(CheckOutcome outcome) {
  switch (outcome) {
    case CheckOutcome::kFail:
      return 3;
    case CheckOutcome::kVacuous:
      return 2;
    case CheckOutcome::kPass:
      return 1;
    case CheckOutcome::kNotApplicable:
      return 0;
  }
  return 3;
}

}  // namespace

void JoinCheck(std::vector<CheckRecord>& checks, CheckRecord check) {
  const auto found =
      std::find_if(checks.begin(), checks.end(), [&](const CheckRecord& entry) { return entry.name == check.name; });
  if (found == checks.end()) {
    checks.push_back(std::move(check));
    return;
  }
  check.compared += found->compared;
  if (Weight(check.outcome) > Weight(found->outcome)) {
    *found = std::move(check);
  } else {
    found->compared = check.compared;
  }
}

Judgement NotStarted(Verdict verdict, std::string why) {
  Judgement judgement;
  judgement.verdict = verdict;
  judgement.message = std::move(why);
  return judgement;
}

Judgement FromOutcome(const CaseOutcome& outcome) {
  Judgement judgement;
  judgement.message = outcome.message;
  switch (outcome.kind) {
    case CaseOutcome::Kind::kUnsupported:
      judgement.verdict = Verdict::kUnsupported;
      break;
    case CaseOutcome::Kind::kEnvironment:
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

void Settle(Judgement& judgement) {
  judgement.verdict = VerdictOf(judgement.checks);
  if (judgement.verdict == Verdict::kFail) judgement.message = MessageOf(judgement.checks, CheckOutcome::kFail);
  if (judgement.verdict == Verdict::kVacuous) judgement.message = MessageOf(judgement.checks, CheckOutcome::kVacuous);
}

Judgement UnlessInterrupted(Judgement judgement, bool stopped) {
  if (!stopped || !(judgement.no_truth || judgement.verdict == Verdict::kNotRun)) return judgement;
  return NotStarted(Verdict::kNotRun, "interrupted");
}

}  // namespace plumbline::conformance
