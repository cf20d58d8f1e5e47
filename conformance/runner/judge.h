// SPDX-License-Identifier: Apache-2.0
// From what was seen of a case to its verdict. Any failed check is FAIL; without one, any vacuous check is VACUOUS;
// PASS is what remains. An engine that did not end well is ERROR or UNSUPPORTED before any check.
#pragma once

#include <optional>

#include "conformance/oracle/exact_check.h"
#include "conformance/runner/observation.h"
#include "conformance/runner/plan.h"
#include "conformance/runner/truth.h"
#include "reports/record/record.h"

namespace plumbline::conformance {

struct Judgement {
  reports::Verdict verdict = reports::Verdict::kError;
  std::vector<reports::CheckRecord> checks;
  std::string message;  // one line; empty for PASS
  std::optional<Divergence> divergence;
  bool engine_failed = false;  // ERROR because the engine itself refused its state, crashed or broke the protocol
};

Judgement Judge(const contract::Case& spec, const Truth& truth, const Observation& seen);

}  // namespace plumbline::conformance
