// SPDX-License-Identifier: Apache-2.0
// CPU implementation of causal_softmax.h: one query's row at a time; the largest score is subtracted first.
#include "kernels/causal_softmax/causal_softmax.h"

#include <algorithm>
#include <cstddef>

#include "kernels/arguments.h"
#include "kernels/bf16.h"
#include "kernels/float_math.h"
#include "kernels/fp16.h"

namespace plumbline::kernels {
namespace {

int64_t CheckedRows(int64_t positions, size_t in_elems, size_t out_elems) {
  Require(positions >= 1, "causal_softmax", "positions must be at least 1");
  Require(in_elems == out_elems, "causal_softmax", "arguments must have the same size");
  Require(in_elems % static_cast<size_t>(positions * positions) == 0, "causal_softmax",
          "the size must be a multiple of positions^2");
  return static_cast<int64_t>(in_elems) / positions;
}

}  // namespace

template <typename T>
void CausalSoftmaxForward(int64_t positions, float scale, std::span<float> scores, std::span<T> probabilities) {
  const int64_t rows = CheckedRows(positions, scores.size(), probabilities.size());
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t num_seen = row % positions + 1;
    float* const score = scores.data() + row * positions;
    T* const out = probabilities.data() + row * positions;
    for (int64_t b = 0; b < num_seen; ++b) score[b] *= scale;
    const float largest = LaneMax(num_seen, [&](int64_t b) { return score[b]; });
    for (int64_t b = 0; b < num_seen; ++b) score[b] = Exp(score[b] - largest);
    const float inverse_sum = 1.0f / LaneSum(num_seen, [&](int64_t b) { return score[b]; });
    for (int64_t b = 0; b < num_seen; ++b) out[b] = FromFloat<T>(score[b] * inverse_sum);
    std::fill(out + num_seen, out + positions, FromFloat<T>(0.0f));
  }
}

template <typename T>
void CausalSoftmaxBackward(int64_t positions, float scale, std::span<const T> probabilities,
                           std::span<const float> dprobabilities, std::span<T> dscores) {
  Require(probabilities.size() == dprobabilities.size(), "causal_softmax", "arguments must have the same size");
  const int64_t rows = CheckedRows(positions, dprobabilities.size(), dscores.size());
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t num_seen = row % positions + 1;
    const T* const p = probabilities.data() + row * positions;
    const float* const dp = dprobabilities.data() + row * positions;
    T* const out = dscores.data() + row * positions;
    const float sum = LaneSum(num_seen, [&](int64_t b) { return ToFloat(p[b]); });
    const float average = LaneSum(num_seen, [&](int64_t b) { return ToFloat(p[b]) * dp[b]; }) / sum;
    for (int64_t b = 0; b < num_seen; ++b) out[b] = FromFloat<T>(scale * ToFloat(p[b]) * (dp[b] - average));
    std::fill(out + num_seen, out + positions, FromFloat<T>(0.0f));
  }
}

template void CausalSoftmaxForward(int64_t, float, std::span<float>, std::span<float>);
template void CausalSoftmaxForward(int64_t, float, std::span<float>, std::span<BFloat16>);
template void CausalSoftmaxForward(int64_t, float, std::span<float>, std::span<Float16>);
template void CausalSoftmaxBackward(int64_t, float, std::span<const float>, std::span<const float>, std::span<float>);
template void CausalSoftmaxBackward(int64_t, float, std::span<const BFloat16>, std::span<const float>,
                                    std::span<BFloat16>);
template void CausalSoftmaxBackward(int64_t, float, std::span<const Float16>, std::span<const float>,
                                    std::span<Float16>);

}  // namespace plumbline::kernels
