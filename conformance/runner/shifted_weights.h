// SPDX-License-Identifier: Apache-2.0
// Two starts of a real family that train alike: the second adds one number to all logits of a token, or to all scores
// of a query. A softmax does not see it, so in real arithmetic loss and gradients are equal; an engine that takes
// exponentials without subtracting the largest first has Inf or 0 / 0 instead. One step: both numbers depend on weights
// that the first update moves, in the two runs by amounts of different rounding. Pure.
#pragma once

#include <vector>

#include "conformance/contract/case_file.h"
#include "conformance/contract/model_spec.h"
#include "conformance/oracle/metamorphic_check.h"

namespace plumbline::conformance {

struct ShiftedStarts {
  std::vector<contract::RealParameterState> whole, shifted;
  Shift shift;
};

// One vector is added to every row of the head, which is untied; its product with a token's last hidden vector is what
// moves, in both directions over tokens. In both runs the head is so large that most logits of a token lie beyond the
// range of an exponential below the largest: to subtract another logit than that is no way out. It is rounded to a grid
// on which the addition is exact.
ShiftedStarts ShiftedLogits(const contract::ModelSpec& model, std::vector<contract::RealParameterState> initial);

// One number is added to the bias of all keys, so that scores move by a query's product with it; in both runs the bias
// of queries is so large that this is beyond the range of an exponential, up in one head and down in the next. Family
// gpt2: llama's keys have no bias.
ShiftedStarts ShiftedScores(const contract::ModelSpec& model, std::vector<contract::RealParameterState> initial);

}  // namespace plumbline::conformance
