// SPDX-License-Identifier: Apache-2.0
// Dropout masks from the shared random stream (docs/exact-family.md, "Random draws"; docs/semantics.md). Plain floats;
// no LibTorch here.
#pragma once

#include <cstdint>
#include <vector>

#include "conformance/contract/random_stream.h"

namespace plumbline::conformance::torch_eager {

// 2 where the element is kept, else 0, for elements 0 ... num_elems - 1: the whole [B, T, d], row-major.
std::vector<float> TwiceKeepMask(uint64_t seed, contract::Site site, int64_t step, int64_t layer, int64_t num_elems);

// Real families (docs/semantics.md): 1 where the element's word is at least `threshold`, else 0, for the elements
// first ... first + num_elems - 1 of the global batch.
std::vector<float> KeepMask(uint64_t seed, contract::Site site, int64_t step, int64_t layer, uint32_t threshold,
                            int64_t first, int64_t num_elems);

}  // namespace plumbline::conformance::torch_eager
