// SPDX-License-Identifier: Apache-2.0
// Where the weights of frozen parameters lie: one after the other in a flat buffer of their own, in no bucket and in no
// shard. Pure integer arithmetic. Source: docs/formats.md, "Buckets and the ledger"; docs/zero3.md, "Memory".
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace plumbline::optimized {

struct FrozenPlace {
  int64_t parameter = 0;  // canonical index
  int64_t offset = 0;     // in elements, a multiple of kAlignmentElems
  int64_t numel = 0;

  friend bool operator==(const FrozenPlace&, const FrozenPlace&) = default;
};

struct FrozenPlan {
  std::vector<FrozenPlace> places;  // ascending
  int64_t total_elems = 0;          // each rounded up to a multiple of kAlignmentElems
};

// frozen: canonical indices, ascending. InvalidArgument if one does not exist or they do not ascend.
FrozenPlan PlanFrozen(std::span<const int64_t> numels, std::span<const int64_t> frozen);

}  // namespace plumbline::optimized
