// SPDX-License-Identifier: Apache-2.0
// Whole buckets of working weights on every rank: all of a plan's but those of groups. After an update each bucket of
// which the ranks have written parts is gathered from these; what every rank updates as a whole (stage 0) is not.
#pragma once

#include <cstdint>
#include <vector>

#include "optimized/engine/flat_buffer.h"
#include "optimized/engine/weight_slice.h"

namespace plumbline::optimized {

class ResidentBuckets {
 public:
  // Writes the addresses of what it holds into the table.
  explicit ResidentBuckets(const WeightInputs& inputs);

  bool Holds(int64_t parameter) const { return inputs_.buckets.places[parameter].bucket >= first_bucket_; }
  Buffer Whole(int64_t parameter) const;
  Buffer Updated(const ShardSlice& slice) const;
  void AppendHeld(std::vector<WeightSlice>& slices) const;

  // Posts all buckets before the first is waited for.
  void GatherShards();

 private:
  const WeightInputs inputs_;
  const int64_t first_bucket_;
  const int64_t first_elem_;
  const FlatBuffer whole_;
  std::vector<Handle> in_flight_;  // destroyed before the memory of its calls
};

}  // namespace plumbline::optimized
