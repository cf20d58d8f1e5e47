// SPDX-License-Identifier: Apache-2.0
// Padding of samples with unequal lengths (docs/semantics.md, "Family llama"). Plain integers; no LibTorch here.
#pragma once

#include <cstdint>
#include <vector>

#include "conformance/contract/batches.h"

namespace plumbline::conformance::torch_eager {

// A copy of `values`, the tokens or the labels of `batches`, in which every position behind a sample's length has the
// value of the sample's first position. The model computes padding like anything else, and a loss weight of 0 takes it
// out; but 0 times a number that is not finite is not 0, so padding may name only what the sample uses anyway.
std::vector<int32_t> WithFilledPadding(const contract::Batches& batches, const std::vector<int32_t>& values);

}  // namespace plumbline::conformance::torch_eager
