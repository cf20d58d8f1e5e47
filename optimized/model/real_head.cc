// SPDX-License-Identifier: Apache-2.0
// See gpt2_head.h; the lines follow those of docs/semantics.md.
#include "optimized/model/gpt2_head.h"

#include <type_traits>

#include "kernels/cross_entropy/cross_entropy.h"

namespace plumbline::optimized {

template <typename T>
Gpt2Head<T>::Gpt2Head(const Gpt2Sizes& sizes, const Parameter<T>& norm_weight_d, const Parameter<T>& norm_bias_d,
                      const Parameter<T>& matrix_vd, Backend& backend, Arena& arena)
    : sizes_(sizes),
      matrix_vd_(matrix_vd),
      backend_(backend),
      norm_(sizes, norm_weight_d, norm_bias_d, arena),
      h_mtd_(arena.Take<T>(sizes.stream_elems())),
      dh_mtd_(arena.Take<T>(sizes.stream_elems())),
      logits_mtv_(arena.Take<float>(sizes.tokens() * sizes.spec.vocab)) {
  if constexpr (std::is_same_v<T, float>) {
    dlogits_mtv_ = logits_mtv_;
  } else {
    dlogits_mtv_ = arena.Take<T>(sizes.tokens() * sizes.spec.vocab);
  }
}

template <typename T>
void Gpt2Head<T>::Forward(std::span<const T> x_mtd) {
  const int64_t tokens = sizes_.tokens();
  norm_.Forward(x_mtd, h_mtd_);
  backend_.MatMul(Dense(h_mtd_, tokens, sizes_.spec.width),
                  Dense(matrix_vd_.weight(), sizes_.spec.vocab, sizes_.spec.width).Transposed(),
                  Dense(logits_mtv_, tokens, sizes_.spec.vocab), WriteMode::kAssign);
}

template <typename T>
double Gpt2Head<T>::Loss(const MicroBatch& micro_batch, float inverse_tokens) {
  return kernels::CrossEntropy<T>(sizes_.spec.vocab, logits_mtv_, micro_batch.labels, micro_batch.loss_weights,
                                  inverse_tokens, dlogits_mtv_);
}

template <typename T>
void Gpt2Head<T>::Backward(const GradientWrites& writes, std::span<const T> x_mtd, std::span<T> dx_mtd) {
  const int64_t tokens = sizes_.tokens();
  const int64_t d = sizes_.spec.width;
  const int64_t v = sizes_.spec.vocab;
  if (!matrix_vd_.is_frozen()) {
    backend_.MatMul(Dense(dlogits_mtv_, tokens, v).Transposed(), Dense(h_mtd_, tokens, d),
                    Dense(matrix_vd_.gradient(), v, d), writes.mode);
    if (!sizes_.spec.tied_head) writes.Ready(matrix_vd_);
  }
  backend_.MatMul(Dense(dlogits_mtv_, tokens, v), Dense(matrix_vd_.weight(), v, d), Dense(dh_mtd_, tokens, d),
                  WriteMode::kAssign);
  norm_.Backward(writes, dh_mtd_, x_mtd, {}, dx_mtd);
}

template class Gpt2Head<float>;
template class Gpt2Head<kernels::BFloat16>;

}  // namespace plumbline::optimized
