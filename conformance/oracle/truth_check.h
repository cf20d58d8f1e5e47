// SPDX-License-Identifier: Apache-2.0
// Two engines that compute in fp64 and share no line, the reference and the witness, on the same steps: they must agree
// as far as fp64 goes. What they agree on may then be called the truth; a formula that one of them has wrong shows
// here, and not as a yardstick that is too long.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "conformance/contract/model_spec.h"
#include "conformance/oracle/real_check.h"
#include "conformance/oracle/step_sight.h"

namespace plumbline::conformance {

// How far two sums of the same numbers may differ, in units of the largest, at unit roundoff u: n sums of n terms each
// lead to at most 2 n u to first order (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 4.2).
// n is taken as layers x (tokens of the batch + width + hidden + vocabulary): the lengths of all sums on a path.
double SumTolerance(const contract::RealSpec& model, int64_t batch, double unit_roundoff);

// That of fp64.
double TruthTolerance(const contract::RealSpec& model, int64_t batch);

// The unit of these: the largest absolute value in the gradient of the step. NaN is passed by.
double LargestGradient(const StepSight& sight);

// "truth": loss, token count and gradients, step by step. The witness may have made more steps, which are not looked
// at. VACUOUS with a divergence: there both have a number that is not finite, which is no truth and no disagreement.
RealResult CheckTruth(const contract::ModelSpec& model, int64_t batch, std::span<const StepSight> reference,
                      std::span<const StepSight> witness);

// In words, of a result that is not PASS: whether they disagree, cannot be compared, or have no finite values.
std::string WhyNoTruth(const RealResult& result);

}  // namespace plumbline::conformance
