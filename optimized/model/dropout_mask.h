// SPDX-License-Identifier: Apache-2.0
// Dropout masks as a function of logical coordinates: never of a rank or a micro-batch, so that every layout drops the
// same elements. The caller says where in the tensor of the global batch its elements begin. Source:
// docs/exact-family.md, "Random draws"; docs/semantics.md, "Family gpt2".
#pragma once

#include <cstdint>
#include <span>

#include "conformance/contract/random_stream.h"

namespace plumbline::optimized {

// floor(rate * 2^32), for 0 <= rate < 1: an element is kept where its word is at least this. InvalidArgument otherwise.
uint64_t DropThreshold(double rate);

// Sets keep[i] to 1 where Draw(seed, site, step, layer, first_element + i) >= threshold, else to 0. Four neighbouring
// elements share one Philox block, which is computed once.
void FillDropoutMask(uint64_t seed, contract::Site site, int64_t step, int64_t layer, int64_t first_element,
                     uint64_t threshold, std::span<uint8_t> keep);

}  // namespace plumbline::optimized
