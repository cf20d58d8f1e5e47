// SPDX-License-Identifier: Apache-2.0
// See reduced_sums.h.
#include "optimized/engine/reduced_sums.h"

#include <algorithm>
#include <utility>

namespace plumbline::optimized {

using kernels::SquareSum;

ReducedSums::ReducedSums(std::string tag, int64_t count, const SumReduction& reduction)
    : tag_(std::move(tag)), reduction_(reduction), sums_(static_cast<size_t>(count)) {}

void ReducedSums::Clear() { std::ranges::fill(sums_, SquareSum{}); }

void ReducedSums::Reduce() {
  constexpr int kScalarStream = 0;
  constexpr auto kTerms = static_cast<int64_t>(std::tuple_size_v<decltype(SquareSum::terms)>);
  static_assert(sizeof(SquareSum) == kTerms * sizeof(double), "sums lie one after the other without gaps");
  if (reduction_.communicator == nullptr) return;
  const Buffer terms{sums_.data(), kTerms * static_cast<int64_t>(sums_.size()), contract::DType::kF64};
  reduced_ = reduction_.communicator->AllReduce(terms, {tag_, reduction_.timeout, kScalarStream});
  reduced_.Wait();
}

}  // namespace plumbline::optimized
