// SPDX-License-Identifier: Apache-2.0
// CPU implementation of head_loss.h: one row at a time.
#include "kernels/head_loss/head_loss.h"

#include <algorithm>
#include <cstddef>

#include "kernels/arguments.h"
#include "kernels/bf16.h"
#include "kernels/fp16.h"

namespace plumbline::kernels {
namespace {

template <typename T>
int64_t SmallestIndexOfLargest(const T* row, int64_t size) {
  int64_t best = 0;
  for (int64_t i = 1; i < size; ++i) {
    if (ToFloat(row[i]) > ToFloat(row[best])) best = i;
  }
  return best;
}

}  // namespace

template <typename T>
double HeadLoss(int64_t vocab, std::span<const T> logits, std::span<const int32_t> label,
                std::span<const int32_t> weight, float inverse_tokens, float loss_scale, std::span<T> dlogits) {
  Require(vocab >= 1, "head_loss", "vocab must be at least 1");
  Require(weight.size() == label.size() && logits.size() == label.size() * static_cast<size_t>(vocab) &&
              dlogits.size() == logits.size(),
          "head_loss", "an argument does not have the size of its shape");
  double loss = 0;
  for (size_t token = 0; token < label.size(); ++token) {
    Require(label[token] >= 0 && label[token] < vocab, "head_loss", "a label is outside the vocabulary");
    const T* row = logits.data() + token * vocab;
    T* gradient = dlogits.data() + token * vocab;
    const int64_t best = SmallestIndexOfLargest(row, vocab);
    const float scale = static_cast<float>(weight[token]) * inverse_tokens;
    loss += static_cast<double>(scale) * (double{ToFloat(row[best])} - double{ToFloat(row[label[token]])});
    std::fill_n(gradient, vocab, FromFloat<T>(0.0f));
    if (best == label[token]) continue;
    gradient[best] = FromFloat<T>(loss_scale * scale);
    gradient[label[token]] = FromFloat<T>(-loss_scale * scale);
  }
  return loss;
}

template double HeadLoss(int64_t, std::span<const float>, std::span<const int32_t>, std::span<const int32_t>, float,
                         float, std::span<float>);
template double HeadLoss(int64_t, std::span<const BFloat16>, std::span<const int32_t>, std::span<const int32_t>, float,
                         float, std::span<BFloat16>);
template double HeadLoss(int64_t, std::span<const Float16>, std::span<const int32_t>, std::span<const int32_t>, float,
                         float, std::span<Float16>);

}  // namespace plumbline::kernels
