// SPDX-License-Identifier: Apache-2.0
// Whether the comparisons of this very case could have failed. Each is made once more with one planted change in what
// was seen (an element, a NaN, a rank, a missing tensor, two names swapped), and must fail; where one does not, the
// case is VACUOUS. The changes are made in memory, after all files were read: that a missing file or a torn dump is
// noticed is for the tests of the readers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "conformance/contract/case_file.h"
#include "conformance/contract/trace.h"
#include "conformance/oracle/real_check.h"
#include "conformance/oracle/run_digest.h"
#include "conformance/oracle/step_sight.h"
#include "reports/record/record.h"

namespace plumbline::conformance {

// Counts planted changes, and remembers the first that a comparison did not notice.
class Guard {
 public:
  // The outcome that the comparison has with the change.
  void Demand(const std::string& comparison, const std::string& change, reports::CheckOutcome outcome);

  // "guard"; vacuous if nothing was planted or something was not noticed.
  reports::CheckRecord Check() const;

 private:
  int64_t planted_ = 0;
  std::string unnoticed_;
  std::vector<std::string> comparisons_;  // each once
};

// All take what passed, by value or restored, so that callers keep theirs.

// "trace", "replicas", "collectives", "ledger", "memory", on the first step of the ranks' traces. The last two where
// the engine keeps such books; those between ranks where there are several.
void GuardTraces(const contract::Case& spec, std::span<const contract::Trace> ranks, Guard& guard);

// "exact".
void GuardExact(const contract::ModelSpec& model, const RunDigest& truth, RunDigest seen, Guard& guard);

// "gradient" and "loss".
void GuardSteps(const contract::ModelSpec& model, const Yardstick& yardstick, std::vector<StepSight> seen,
                Guard& guard);

// "bias": a factor of 1 +- 2^-10 in each tensor in turn, in the direction in which it is off already (against it, it is
// found with the power that the check states, not always), and a NaN.
void GuardBias(const contract::ModelSpec& model, std::span<const StepSight> truth, std::vector<StepSight> seen,
               Guard& guard);

// "accumulation": all gradients of all steps rounded to the bits of storage, and a NaN.
void GuardAccumulation(const contract::ModelSpec& model, std::span<const StepSight> plain, std::vector<StepSight> seen,
                       Guard& guard);

// "update" after a step that was made.
void GuardUpdate(const contract::Case& spec, const RealStart& start, StepSight after, Guard& guard);

// "skip".
void GuardSkipped(const contract::Case& spec, const RealStart& before, StepSight after, Guard& guard);

// "scale": a scale that doubles in the last step, and a step that was skipped without a trace in the scaler.
void GuardLossScale(const contract::DynamicLossScale& settings, const contract::LossScaler& before, RunDigest seen,
                    Guard& guard);

// "relation" between two equal runs.
void GuardRelation(const contract::ModelSpec& model, const RunDigest& expected, RunDigest seen, Guard& guard);

// "trajectory".
void GuardTrajectory(std::span<const double> truth, int64_t most_tokens, std::span<const std::vector<double>> drifted,
                     std::vector<double> seen, Guard& guard);

}  // namespace plumbline::conformance
