// SPDX-License-Identifier: Apache-2.0
// Why a case failed, so that another case can be said to fail for the same reason: the check that leads, and the tensor
// it names; of an engine that ended by itself, what it said without its numbers and names. Pure.
#pragma once

#include <optional>
#include <string>

#include "conformance/contract/model_spec.h"
#include "conformance/runner/judge.h"

namespace plumbline::conformance {

struct FailureReason {
  std::string check;   // "engine" for an engine's own error
  std::string tensor;  // empty: the check names none
  std::string error;   // of an engine's own error, without what depends on sizes

  friend auto operator<=>(const FailureReason&, const FailureReason&) = default;
};

// Nothing unless the verdict is FAIL or the engine itself failed: what passed, was vacuous, had no truth, hung or was
// interrupted has no reason that a smaller case could share.
std::optional<FailureReason> ReasonOf(const Judgement& judgement);

// Whether this judgement of a case of `model` is a failure for that reason: the same check leads, and names the same
// tensor where the model still has it. A failed comparison of exact values counts only where the certificate holds:
// else the engine may have rounded, as it may.
bool FailsFor(const FailureReason& reason, const contract::ModelSpec& model, const Judgement& judgement);

}  // namespace plumbline::conformance
