// SPDX-License-Identifier: Apache-2.0
// Batches of which only some samples have a loss, so that the reference, which knows nothing of micro-batches, gives
// their share of a gradient; and batches that an engine may have confused with the right ones. No arithmetic of a
// model.
#pragma once

#include <cstdint>

#include "conformance/contract/batches.h"

namespace plumbline::conformance {

// In `step`, samples outside of [first, last) get loss weight 0. What remains is scaled so that the gradient of family
// exact is the samples' very share of the whole batch's: weights are multiples of the number of weighted tokens, which
// is now another. In the real families the gradient is that of the samples' own mean; ShareFactor says how to scale it.
contract::Batches OnlySamples(const contract::Batches& batches, int64_t step, int64_t first, int64_t last,
                              bool is_exact);

// Weighted tokens of the samples in the step.
int64_t WeightedTokens(const contract::Batches& batches, int64_t step, int64_t first, int64_t last);

// Sum of the loss weights of the samples over that of all.
double ShareFactor(const contract::Batches& batches, int64_t step, int64_t first, int64_t last);

// In `step`, sample s has the labels of sample (s + by) mod batch.
contract::Batches MovedLabels(const contract::Batches& batches, int64_t step, int64_t by);

// In `step`, everything is that of another step of the same batches.
contract::Batches WithStepOf(const contract::Batches& batches, int64_t step, int64_t other);

}  // namespace plumbline::conformance
