// SPDX-License-Identifier: Apache-2.0
// How parameters are laid into buckets, from the words of docs/formats.md ("Buckets and the ledger") and from nothing
// of any engine. It knows lengths only: which parameters are bucketed together is gather_formula.h's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "conformance/contract/model_spec.h"
#include "conformance/contract/run_config.h"

namespace plumbline::conformance {

// `elems` rounded up to where the next parameter may begin.
int64_t AlignedElems(int64_t elems);

// Padded lengths, in elements, of the buckets of these parameters (canonical indices), taken in this order.
std::vector<int64_t> PaddedBucketElems(const contract::ModelSpec& model, const contract::RunConfig& config,
                                       const std::vector<size_t>& parameters);

// Of each of these buckets, the parameter that is in it last.
std::vector<size_t> LastParametersOfBuckets(const contract::ModelSpec& model, const contract::RunConfig& config,
                                            const std::vector<size_t>& parameters);

}  // namespace plumbline::conformance
