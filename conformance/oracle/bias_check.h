// SPDX-License-Identifier: Apache-2.0
// A small constant factor in one gradient: is the mean of <e, t> / <t, t> over steps from unrelated states further from
// zero than its own scatter explains? No plain engine, and no assumption about errors inside a step: whatever rows,
// tokens or layers share is inside the scatter between steps. Formulas and their derivation: docs/tolerance.md, "A
// small bias". Norms and tails are the business of the check "gradient".
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "conformance/contract/model_spec.h"
#include "conformance/oracle/real_check.h"
#include "conformance/oracle/step_sight.h"

namespace plumbline::conformance {

// Chance of a false alarm of one comparison (of one tensor), two-sided.
inline constexpr double kBiasFalseAlarmRate = 1e-6;
// What is to be found, with at least this chance.
inline constexpr double kSoughtBias = 0x1p-10;
inline constexpr double kBiasPower = 0.95;
// Tensors of fewer elements are left to the other checks.
inline constexpr int64_t kBiasMinNumel = 4096;

// The slopes of one tensor, one a step.
struct SlopeSample {
  size_t tensor = 0;  // canonical index
  std::string name;
  int64_t numel = 0;
  std::vector<double> slopes;
  // What the variance of a slope would be if the errors of elements were independent: the mean over steps of
  // sum (e t)^2 / (sum t^2)^2.
  double independent_variance = 0;
};

// What the slopes of one tensor say.
struct SlopeFinding {
  double mean = 0;
  double deviation = 0;        // of one step's slope, K - 1 degrees of freedom
  double student_t = 0;        // mean over its standard error
  double limit = 0;            // of |mean|
  double found_from = 0;       // a bias of this size is found with kBiasPower
  double effective_elems = 0;  // independent elements of one step that would scatter as much
  double lag_one = 0;          // correlation of neighbours in the list of steps

  bool within() const;  // positive form: NaN is not
  bool sees() const { return found_from <= kSoughtBias; }
};

// Of each tensor that is trained and large enough, in canonical order. Parallel vectors of sights with whole gradients;
// a step in which the truth is zero has a slope of NaN.
std::vector<SlopeSample> MeasureSlopes(const contract::ModelSpec& model, std::span<const StepSight> truth,
                                       std::span<const StepSight> candidate);

// The largest mean slope that roundings of a legal engine can have in this model, in second order.
double LegalSlope(const contract::Gpt2Spec& model, contract::DType storage);

// At least three slopes.
SlopeFinding JudgeSlopes(const SlopeSample& sample, double legal_slope);

// "bias". Entries are steps from states that have nothing to do with each other, the same in both lists.
RealResult CheckBias(const contract::ModelSpec& model, std::span<const StepSight> truth,
                     std::span<const StepSight> candidate);

}  // namespace plumbline::conformance
