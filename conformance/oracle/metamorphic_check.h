// SPDX-License-Identifier: Apache-2.0
// Metamorphic checks, as pure functions: two or three runs of one engine on batches, layouts or weights that are made
// of each other, and what must follow. No truth takes part. What is demanded, and why so much, is in docs/tolerance.md.
// How the runs are made is not known here; whether they differ at all is for the caller to say.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/contract/model_spec.h"
#include "conformance/oracle/real_check.h"
#include "conformance/oracle/run_digest.h"
#include "conformance/oracle/step_sight.h"

namespace plumbline::conformance {

// Results are of the check "metamorphic"; its detail begins with the relation's name. VACUOUS where nothing was
// compared or a run has no gradient that is not zero.

// Family exact: every step of both runs is equal in every bit.
RealResult CheckSameRuns(const std::string& relation, const contract::ModelSpec& model, const RunDigest& whole,
                         const RunDigest& variant);

// Family exact, the batch in two parts: losses, token counts, and the sums and indexed sums of gradients, which are
// sums over tokens, add up to the whole's.
RealResult CheckSplitRuns(const contract::ModelSpec& model, const RunDigest& whole, const RunDigest& first,
                          const RunDigest& second);

// gpt2 in fp32, one step: loss and gradients differ by what sums in another order may. `batch`: samples of the step.
RealResult CheckNearSteps(const std::string& relation, const contract::ModelSpec& model, int64_t batch,
                          const StepSight& whole, const StepSight& variant);

// The batch in two parts, each with the mean over its own N tokens: N G = N1 G1 + N2 G2, and the loss alike.
RealResult CheckSplitSteps(const contract::ModelSpec& model, int64_t batch, const StepSight& whole,
                           const StepSight& first, const StepSight& second);

// Weights times 2^exponents[tensor][column], which cancel: the loss has the same bits, and the gradient of each weight
// is the whole's times 2^-exponent, bit for bit.
RealResult CheckScaledSteps(const contract::ModelSpec& model, const std::vector<std::vector<int>>& exponents,
                            const StepSight& whole, const StepSight& scaled);

// What is known of two runs whose logits, or scores of attention, differ by one number for all of a softmax.
struct Shift {
  double largest = 0;     // the magnitudes of the terms of such a number add up to no more, in either run
  double least_loss = 0;  // VACUOUS unless the loss is above it: logits were to be far apart
};

// gpt2 in fp32, one step: what does not depend on the shift differs by no more than the roundings of numbers of its
// size lead to.
RealResult CheckShiftedSteps(const std::string& relation, const contract::ModelSpec& model, int64_t batch,
                             const Shift& shift, const StepSight& whole, const StepSight& shifted);

}  // namespace plumbline::conformance
