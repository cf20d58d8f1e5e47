// SPDX-License-Identifier: Apache-2.0
// From checks to a verdict, for every family. Any failed check is FAIL; without one, any vacuous check is VACUOUS; PASS
// is what remains. An engine that did not end well is ERROR or UNSUPPORTED before any check.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "conformance/engines/run_cases.h"
#include "conformance/oracle/exact_check.h"
#include "reports/record/record.h"

namespace plumbline::conformance {

struct Judgement {
  reports::Verdict verdict = reports::Verdict::kError;
  std::vector<reports::CheckRecord> checks;
  std::string message;  // one line; empty for PASS
  std::optional<Divergence> divergence;
  bool no_truth = false;       // ERROR because what it would be compared with is missing
  bool engine_failed = false;  // ERROR because the engine itself refused its state, crashed or broke the protocol
  std::optional<size_t> diverged_run = std::nullopt;  // of the trial's runs, where several
};

// Of a case that no engine was given: UNSUPPORTED or NOT_RUN.
Judgement NotStarted(reports::Verdict verdict, std::string why);

// Of an engine that did not end well. What this machine lacks for a case, the engine's status "environment", is
// NOT_RUN, as it is where `describe` ends with 4 for all of them.
Judgement FromOutcome(const CaseOutcome& outcome);

// Puts a check into the one of its name: the counts add up, the first of the worst outcome gives the detail. A failure
// outweighs vacuity, that a pass, and that a check that did not apply.
void JoinCheck(std::vector<reports::CheckRecord>& checks, reports::CheckRecord check);

// Of one that did: sets verdict and message from the checks. Without any check it is VACUOUS.
void Settle(Judgement& judgement);

// After a stop request a case without a verdict is NOT_RUN, whatever the interruption made of it.
Judgement UnlessInterrupted(Judgement judgement, bool stopped);

}  // namespace plumbline::conformance
