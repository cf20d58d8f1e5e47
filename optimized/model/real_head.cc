// SPDX-License-Identifier: Apache-2.0
// See real_head.h; the lines follow those of docs/semantics.md.
#include "optimized/model/real_head.h"

#include <type_traits>

#include "kernels/cross_entropy/cross_entropy.h"
#include "optimized/model/norm.h"
#include "optimized/model/rms_norm.h"

namespace plumbline::optimized {

template <typename T, template <typename> class RowNorm>
RealHead<T, RowNorm>::RealHead(const RealSizes& sizes, const RowNorm<T>& norm, const Parameter<T>& matrix_vd,
                               bool is_tied, Backend& backend, Arena& arena)
    : sizes_(sizes),
      norm_(norm),
      matrix_vd_(matrix_vd),
      is_tied_(is_tied),
      backend_(backend),
      h_mtd_(arena.Take<T>(sizes.stream_elems())),
      dh_mtd_(arena.Take<T>(sizes.stream_elems())),
      logits_mtv_(arena.Take<float>(sizes.logits_elems())) {
  if constexpr (std::is_same_v<T, float>) {
    dlogits_mtv_ = logits_mtv_;
  } else {
    dlogits_mtv_ = arena.Take<T>(sizes.logits_elems());
  }
}

template <typename T, template <typename> class RowNorm>
void RealHead<T, RowNorm>::Forward(std::span<const T> x_mtd) {
  const int64_t tokens = sizes_.tokens();
  norm_.Forward(x_mtd, h_mtd_.first(sizes_.stream_elems()));
  backend_.MatMul(Dense(h_mtd_, tokens, sizes_.spec.width),
                  Dense(matrix_vd_.weight(), sizes_.spec.vocab, sizes_.spec.width).Transposed(),
                  Dense(logits_mtv_, tokens, sizes_.spec.vocab), WriteMode::kAssign);
}

template <typename T, template <typename> class RowNorm>
double RealHead<T, RowNorm>::Loss(const MicroBatch& micro_batch, float inverse_tokens, float loss_scale) {
  const int64_t elems = sizes_.logits_elems();
  return kernels::CrossEntropy<T>(sizes_.spec.vocab, logits_mtv_.first(elems), micro_batch.labels,
                                  micro_batch.loss_weights, inverse_tokens, loss_scale, dlogits_mtv_.first(elems));
}

template <typename T, template <typename> class RowNorm>
void RealHead<T, RowNorm>::Backward(const GradientWrites& writes, std::span<const T> x_mtd, std::span<T> dx_mtd) {
  const int64_t tokens = sizes_.tokens();
  const int64_t d = sizes_.spec.width;
  const int64_t v = sizes_.spec.vocab;
  if (!matrix_vd_.is_frozen()) {
    backend_.MatMul(Dense(dlogits_mtv_, tokens, v).Transposed(), Dense(h_mtd_, tokens, d),
                    Dense(matrix_vd_.gradient(), v, d), writes.Mode(matrix_vd_));
    if (!is_tied_) writes.Ready(matrix_vd_);
  }
  backend_.MatMul(Dense(dlogits_mtv_, tokens, v), Dense(matrix_vd_.weight(), v, d), Dense(dh_mtd_, tokens, d),
                  WriteMode::kAssign);
  const std::span<const T> dh_mtd = dh_mtd_.first(sizes_.stream_elems());
  norm_.Backward(writes, dh_mtd, x_mtd, {}, dx_mtd);
}

template class RealHead<float, Norm>;
template class RealHead<kernels::BFloat16, Norm>;
template class RealHead<kernels::Float16, Norm>;
template class RealHead<float, RmsNorm>;
template class RealHead<kernels::BFloat16, RmsNorm>;
template class RealHead<kernels::Float16, RmsNorm>;

}  // namespace plumbline::optimized
