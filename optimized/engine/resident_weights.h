// SPDX-License-Identifier: Apache-2.0
// Whole buckets of working weights, some or all of a plan's, on every rank. After an update each bucket is gathered
// from the parts that the ranks have written. It holds; the stores of weight_store.h decide what it is used for.
#pragma once

#include <cstdint>
#include <vector>

#include "optimized/engine/flat_buffer.h"
#include "optimized/engine/weight_store.h"

namespace plumbline::optimized {

class ResidentBuckets {
 public:
  // The buckets [first_bucket, end) of the plan.
  ResidentBuckets(const WeightInputs& inputs, int64_t first_bucket);

  bool Holds(int64_t parameter) const { return inputs_.buckets.places[parameter].bucket >= first_bucket_; }
  Buffer Whole(int64_t parameter) const;
  Buffer Updated(const ShardSlice& slice) const;
  void AppendHeld(std::vector<WeightSlice>& slices) const;
  // Writes the addresses of what it holds into the table.
  void FillTable() const;

  // Posts all buckets before the first is waited for.
  void GatherAll();

 private:
  const WeightInputs inputs_;
  const int64_t first_bucket_;
  const int64_t first_elem_;
  const FlatBuffer whole_;
  std::vector<Handle> in_flight_;  // destroyed before the memory of its calls
};

}  // namespace plumbline::optimized
