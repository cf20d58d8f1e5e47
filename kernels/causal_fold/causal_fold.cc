// SPDX-License-Identifier: Apache-2.0
// CPU implementation of causal_fold.h: row by row, the part up to the diagonal, then zeros.
#include "kernels/causal_fold/causal_fold.h"

#include <algorithm>
#include <cstddef>

#include "kernels/arguments.h"
#include "kernels/bf16.h"
#include "kernels/fold/fold_math.h"
#include "kernels/fp16.h"

namespace plumbline::kernels {
namespace {

// Number of rows of all matrices; checks the shape.
size_t NumRows(int64_t positions, size_t elems) {
  Require(positions >= 1, "causal_fold", "positions must be at least 1");
  const size_t columns = static_cast<size_t>(positions);
  Require(elems % (columns * columns) == 0, "causal_fold", "the size must be a multiple of positions squared");
  return elems / columns;
}

}  // namespace

template <typename T>
void CausalFoldForward(int64_t positions, std::span<const T> z, float bound, std::span<T> a) {
  Require(z.size() == a.size(), "causal_fold", "arguments must have the same size");
  const size_t num_rows = NumRows(positions, a.size());
  const size_t columns = static_cast<size_t>(positions);
  const FoldConstants fold(bound);
  for (size_t row = 0; row < num_rows; ++row) {
    const size_t begin = row * columns;
    const size_t visible = row % columns + 1;
    for (size_t i = begin; i < begin + visible; ++i) a[i] = FromFloat<T>(FoldValue(ToFloat(z[i]), fold));
    std::fill(a.begin() + begin + visible, a.begin() + begin + columns, FromFloat<T>(0.0f));
  }
}

template <typename T>
void CausalFoldBackward(int64_t positions, std::span<const T> da, std::span<const T> z, float bound,
                        float gradient_bound, std::span<T> ds) {
  Require(da.size() == ds.size() && z.size() == ds.size(), "causal_fold", "arguments must have the same size");
  const size_t num_rows = NumRows(positions, ds.size());
  const size_t columns = static_cast<size_t>(positions);
  const FoldConstants fold(bound);
  const FoldConstants gradient_fold(gradient_bound);
  for (size_t row = 0; row < num_rows; ++row) {
    const size_t begin = row * columns;
    const size_t visible = row % columns + 1;
    for (size_t i = begin; i < begin + visible; ++i) {
      ds[i] = FromFloat<T>(TimesSlope(FoldValue(ToFloat(da[i]), gradient_fold), ToFloat(z[i]), fold));
    }
    std::fill(ds.begin() + begin + visible, ds.begin() + begin + columns, FromFloat<T>(0.0f));
  }
}

template void CausalFoldForward(int64_t, std::span<const float>, float, std::span<float>);
template void CausalFoldForward(int64_t, std::span<const BFloat16>, float, std::span<BFloat16>);
template void CausalFoldForward(int64_t, std::span<const Float16>, float, std::span<Float16>);
template void CausalFoldBackward(int64_t, std::span<const float>, std::span<const float>, float, float,
                                 std::span<float>);
template void CausalFoldBackward(int64_t, std::span<const BFloat16>, std::span<const BFloat16>, float, float,
                                 std::span<BFloat16>);
template void CausalFoldBackward(int64_t, std::span<const Float16>, std::span<const Float16>, float, float,
                                 std::span<Float16>);

}  // namespace plumbline::kernels
