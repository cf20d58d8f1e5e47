// SPDX-License-Identifier: Apache-2.0
// Which collectives a rank calls in a step, one after the other, and their digest: derived from the words of
// docs/formats.md ("The order of calls") and docs/zero3.md, and from nothing of any engine. Numbers and bytes alone are
// counted a second time in ledger_check.h.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "conformance/contract/model_spec.h"
#include "conformance/contract/run_config.h"

namespace plumbline::conformance {

// Numbered as the digest numbers them.
enum class CollectiveKind : uint64_t { kAllReduce = 1, kReduceScatter = 2, kAllGather = 3 };

struct CollectiveCall {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  int64_t bytes = 0;
  friend bool operator==(const CollectiveCall&, const CollectiveCall&) = default;
};

// Of each rank in each step; none with one rank.
std::vector<CollectiveCall> ExpectedCalls(const contract::ModelSpec& model, const contract::RunConfig& config);

// `comm_sequence` of these calls; 0 of none.
uint64_t SequenceOf(std::span<const CollectiveCall> calls);

}  // namespace plumbline::conformance
