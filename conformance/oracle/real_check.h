// SPDX-License-Identifier: Apache-2.0
// The checks of the real families, as pure functions: three-way comparison of single steps, the update against its
// closed form, skipped steps, bitwise relations between two runs, and trajectories of losses. What is assumed and how
// each limit comes about is in docs/tolerance.md. No limit is a setting.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "conformance/contract/case_file.h"
#include "conformance/contract/model_spec.h"
#include "conformance/oracle/exact_check.h"
#include "conformance/oracle/real_start.h"
#include "conformance/oracle/run_digest.h"
#include "conformance/oracle/step_sight.h"
#include "reports/record/record.h"

namespace plumbline::conformance {

struct RealResult {
  reports::CheckRecord check;  // compared counts values; vacuous if it is 0
  std::optional<Divergence> divergence;
};

// Single steps from the same injected states. truth: fp64. plain, other_plain: two plain engines of the candidate's
// precision that sum in different orders. Vectors are parallel: entry i is the same step and state in all of them, and
// in the candidate's.
struct Yardstick {
  std::vector<StepSight> truth;
  std::vector<StepSight> plain;
  std::vector<StepSight> other_plain;
};

// "gradient": each region of the gradient by class (NaN, Inf, zero), norm, slope and tail. Needs two steps or more: one
// shows no spread.
RealResult CheckGradients(const contract::ModelSpec& model, const Yardstick& yardstick,
                          std::span<const StepSight> candidate);

// "loss": the losses of the same steps.
RealResult CheckLosses(const Yardstick& yardstick, std::span<const StepSight> candidate);

// "update": everything that one step does after the gradient, against the closed form in fp64 that begins with the
// candidate's own dumped gradient and the injected state.
RealResult CheckUpdate(const contract::Case& spec, const RealStart& before, const StepSight& after);

// "update", of clipping by history: vacuous where none of the steps, each of which began with the history beside it, is
// clipped. An engine that does not clip would pass.
reports::CheckRecord CheckClipped(const contract::RunConfig& config, std::span<const contract::NormHistory> before,
                                  std::span<const StepSight> after);

// "skip": a step whose gradient is not finite changes nothing, and says so.
RealResult CheckSkipped(const contract::Case& spec, const RealStart& before, const StepSight& after);

// "relation": two runs of one engine that must be equal bit for bit. `name` says which two ("zero 0 = 3").
RealResult CompareBitwise(const std::string& name, const contract::ModelSpec& model, const RunDigest& expected,
                          const RunDigest& seen);

// "trajectory": losses of whole runs. The candidate's falls from first to last, and its distance from the truth is like
// that of the plain engine's runs, each of which began at weights disturbed by half an ulp ([run][step]). most_tokens:
// of the step that counts the most.
RealResult CheckTrajectory(std::span<const double> truth, int64_t most_tokens,
                           std::span<const std::vector<double>> drifted, std::span<const double> candidate);

}  // namespace plumbline::conformance
