// SPDX-License-Identifier: Apache-2.0
// Sums of squares of things that may lie in pieces on many ranks: each rank adds the pieces that it holds, and one
// all-reduce gives every rank the same bits, however the pieces are cut (kernels/sum_of_squares). Of a piece that
// several ranks hold one of them counts.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/sum_of_squares/sum_of_squares.h"
#include "optimized/comm/communicator.h"
#include "optimized/partition/shard_plan.h"

namespace plumbline::optimized {

// How the ranks of a training add up.
struct SumReduction {
  Communicator* communicator = nullptr;  // null where every rank holds everything
  std::chrono::duration<double> timeout{};
};

class ReducedSums {
 public:
  // `tag` names the all-reduce in errors.
  ReducedSums(std::string tag, int64_t count, const SumReduction& reduction);

  // Whether this rank adds what it holds of the slice: it does unless a rank before it has the same.
  bool Counts(const ShardSlice& slice) const { return slice.is_first_copy || reduction_.communicator == nullptr; }

  void Clear();
  // A sum to be added to; it must be carried when Reduce is called.
  kernels::SquareSum& operator[](int64_t index) { return sums_[index]; }
  std::span<kernels::SquareSum> Range(int64_t begin, int64_t count) { return std::span(sums_).subspan(begin, count); }

  // Called by all ranks. Errors: those of the communicator.
  void Reduce();

 private:
  const std::string tag_;
  const SumReduction reduction_;
  std::vector<kernels::SquareSum> sums_;
  Handle reduced_;  // after what it writes to: destroyed first
};

}  // namespace plumbline::optimized
