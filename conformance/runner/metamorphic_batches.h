// SPDX-License-Identifier: Apache-2.0
// Batches made from those of a case: the samples in other places, or a part of the loss weights set to zero. Pure, and
// the same for the same seed. Who computes which sample is docs/exact-family.md's.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "conformance/contract/batches.h"
#include "conformance/contract/run_config.h"

namespace plumbline::conformance {

// In each step and on each rank the rank's samples in another order.
contract::Batches PermutedBatches(const contract::Batches& batches, const contract::RunConfig& config, uint64_t seed);

// Each rank has the samples of the next one, the last those of the first.
contract::Batches RelabelledBatches(const contract::Batches& batches, const contract::RunConfig& config);

// Whether in every step some micro-batch, or some rank, holds other samples (as a set: their order alone changes
// nothing).
bool MovesBetweenMicroBatches(const contract::Batches& before, const contract::Batches& after,
                              const contract::RunConfig& config);
bool MovesBetweenRanks(const contract::Batches& before, const contract::Batches& after,
                       const contract::RunConfig& config);

// Every weighted token of the one step is in exactly one part, and no rank's or accumulation step's share of the first
// part is like all others'. In family exact parts are of whole samples, since gradients of one sample's tokens are
// folded together, with half of the tokens each (a power of two), so that their weights are half as large. None where
// there are no such parts.
std::optional<std::array<contract::Batches, 2>> SplitBatches(const contract::Batches& batches,
                                                             const contract::RunConfig& config, bool is_exact,
                                                             uint64_t seed);

// Behind the end of each sample every token and label is the next one of the vocabulary.
contract::Batches PaddedBatches(const contract::Batches& batches, int64_t vocab);

// Weighted tokens of the first step.
int64_t NumWeighted(const contract::Batches& batches);

}  // namespace plumbline::conformance
