// SPDX-License-Identifier: Apache-2.0
// CPU implementation of cross_entropy.h: one row at a time; the largest logit is subtracted first.
#include "kernels/cross_entropy/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "kernels/arguments.h"
#include "kernels/bf16.h"
#include "kernels/float_math.h"
#include "kernels/fp16.h"

namespace plumbline::kernels {

template <typename T>
double CrossEntropy(int64_t vocab, std::span<float> logits, std::span<const int32_t> label,
                    std::span<const int32_t> weight, float inverse_tokens, float loss_scale, std::span<T> dlogits) {
  Require(vocab >= 1, "cross_entropy", "vocab must be at least 1");
  Require(weight.size() == label.size() && logits.size() == label.size() * static_cast<size_t>(vocab) &&
              dlogits.size() == logits.size(),
          "cross_entropy", "an argument does not have the size of its shape");
  double loss = 0;
  for (size_t token = 0; token < label.size(); ++token) {
    Require(label[token] >= 0 && label[token] < vocab, "cross_entropy", "a label is outside the vocabulary");
    float* const row = logits.data() + token * static_cast<size_t>(vocab);
    T* const out = dlogits.data() + token * static_cast<size_t>(vocab);
    if (weight[token] == 0) {
      std::fill_n(out, vocab, FromFloat<T>(0.0f));
      continue;
    }
    const float scale = static_cast<float>(weight[token]) * inverse_tokens;
    const float labelled = row[label[token]];
    const float largest = LaneMax(vocab, [&](int64_t v) { return row[v]; });
    for (int64_t v = 0; v < vocab; ++v) row[v] = Exp(row[v] - largest);
    const float sum = LaneSum(vocab, [&](int64_t v) { return row[v]; });
    loss += double{scale} * (std::log(double{sum}) + (double{largest} - double{labelled}));
    const float inverse_sum = 1.0f / sum;
    const float gradient_scale = scale * loss_scale;
    const float at_label = gradient_scale * (row[label[token]] * inverse_sum - 1.0f);
    for (int64_t v = 0; v < vocab; ++v) out[v] = FromFloat<T>(gradient_scale * (row[v] * inverse_sum));
    out[label[token]] = FromFloat<T>(at_label);
  }
  return loss;
}

template double CrossEntropy(int64_t, std::span<float>, std::span<const int32_t>, std::span<const int32_t>, float,
                             float, std::span<float>);
template double CrossEntropy(int64_t, std::span<float>, std::span<const int32_t>, std::span<const int32_t>, float,
                             float, std::span<BFloat16>);
template double CrossEntropy(int64_t, std::span<float>, std::span<const int32_t>, std::span<const int32_t>, float,
                             float, std::span<Float16>);

}  // namespace plumbline::kernels
