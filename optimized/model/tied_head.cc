// SPDX-License-Identifier: Apache-2.0
// See tied_head.h; the lines follow those of docs/exact-family.md.
#include "optimized/model/tied_head.h"

#include "kernels/fold/fold.h"
#include "kernels/head_loss/head_loss.h"

namespace plumbline::optimized {

template <typename T>
TiedHead<T>::TiedHead(const ExactSizes& sizes, Parameter<T> embed_vd, Backend& backend, Arena& arena)
    : sizes_(sizes),
      embed_vd_(embed_vd),
      backend_(backend),
      h_mtd_(arena.Take<T>(sizes.tokens() * sizes.spec.width)),
      logits_mtv_(arena.Take<T>(sizes.tokens() * sizes.spec.vocab)),
      dlogits_mtv_(arena.Take<T>(sizes.tokens() * sizes.spec.vocab)) {}

template <typename T>
void TiedHead<T>::Forward(std::span<const T> x_mtd) {
  const int64_t tokens = sizes_.tokens();
  kernels::FoldForward<T, T>(x_mtd, sizes_.bound(), h_mtd_);
  backend_.MatMul(Dense(h_mtd_, tokens, sizes_.spec.width),
                  Dense(embed_vd_.weight(), sizes_.spec.vocab, sizes_.spec.width).Transposed(),
                  Dense(logits_mtv_, tokens, sizes_.spec.vocab), WriteMode::kAssign);
}

template <typename T>
double TiedHead<T>::Loss(const MicroBatch& micro_batch, float inverse_tokens) {
  return kernels::HeadLoss<T>(sizes_.spec.vocab, logits_mtv_, micro_batch.labels, micro_batch.loss_weights,
                              inverse_tokens, sizes_.loss_scale, dlogits_mtv_);
}

template <typename T>
void TiedHead<T>::Backward(const GradientWrites& writes, std::span<const T> x_mtd, std::span<T> dx_mtd) {
  const int64_t tokens = sizes_.tokens();
  const int64_t d = sizes_.spec.width;
  const int64_t v = sizes_.spec.vocab;
  backend_.MatMul(Dense(dlogits_mtv_, tokens, v).Transposed(), Dense(h_mtd_, tokens, d),
                  Dense(embed_vd_.gradient(), v, d), writes.Mode(embed_vd_));
  backend_.MatMul(Dense(dlogits_mtv_, tokens, v), Dense(embed_vd_.weight(), v, d), Dense(dx_mtd, tokens, d),
                  WriteMode::kAssign);
  kernels::FoldForward<T, T>(dx_mtd, sizes_.gradient_bound(), dx_mtd);
  kernels::FoldBackward<T>(dx_mtd, x_mtd, sizes_.bound(), dx_mtd);
}

template class TiedHead<float>;
template class TiedHead<kernels::BFloat16>;
template class TiedHead<kernels::Float16>;

}  // namespace plumbline::optimized
