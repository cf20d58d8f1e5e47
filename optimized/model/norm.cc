// SPDX-License-Identifier: Apache-2.0
// See norm.h.
#include "optimized/model/norm.h"

#include "kernels/layer_norm/layer_norm.h"

namespace plumbline::optimized {

template <typename T>
Norm<T>::Norm(const RealSizes& sizes, const Parameter<T>& weight_d, const Parameter<T>& bias_d, Arena& arena)
    : sizes_(sizes),
      weight_d_(weight_d),
      bias_d_(bias_d),
      mean_mt_(arena.Take<float>(sizes.tokens())),
      rstd_mt_(arena.Take<float>(sizes.tokens())) {}

template <typename T>
void Norm<T>::Forward(std::span<const T> x_mtd, std::span<T> h_mtd) {
  kernels::LayerNormForward<T>({sizes_.tokens(), sizes_.spec.width}, x_mtd, weight_d_.weight(), bias_d_.weight(),
                               static_cast<float>(sizes_.spec.norm_epsilon), h_mtd, mean_mt_, rstd_mt_);
}

template <typename T>
void Norm<T>::Backward(const GradientWrites& writes, std::span<const T> dh_mtd, std::span<const T> x_mtd,
                       std::span<const T> residual_mtd, std::span<T> dx_mtd) const {
  const kernels::LayerNormSizes sizes{sizes_.tokens(), sizes_.spec.width};
  writes.Begin(bias_d_);
  writes.Begin(weight_d_);
  kernels::LayerNormWeightBackward<T>(sizes, dh_mtd, x_mtd, mean_mt_, rstd_mt_, weight_d_.gradient(),
                                      bias_d_.gradient());
  writes.Ready(bias_d_);
  writes.Ready(weight_d_);
  kernels::LayerNormBackward<T>(sizes, dh_mtd, x_mtd, weight_d_.weight(), mean_mt_, rstd_mt_, residual_mtd, dx_mtd);
}

template class Norm<float>;
template class Norm<kernels::BFloat16>;
template class Norm<kernels::Float16>;

}  // namespace plumbline::optimized
