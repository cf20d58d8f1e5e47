// SPDX-License-Identifier: Apache-2.0
// See rms_norm.h.
#include "optimized/model/rms_norm.h"

#include "kernels/rms_norm/rms_norm.h"

namespace plumbline::optimized {

template <typename T>
RmsNorm<T>::RmsNorm(const RealSizes& sizes, const Parameter<T>& weight_d, Arena& arena)
    : sizes_(sizes), weight_d_(weight_d), rstd_mt_(arena.Take<float>(sizes.tokens())) {}

template <typename T>
void RmsNorm<T>::Forward(std::span<const T> x_mtd, std::span<T> h_mtd) {
  kernels::RmsNormForward<T>({sizes_.tokens(), sizes_.spec.width}, x_mtd, weight_d_.weight(),
                             static_cast<float>(sizes_.spec.norm_epsilon), h_mtd, rstd_mt_.first(sizes_.tokens()));
}

template <typename T>
template <typename From>
void RmsNorm<T>::Backward(const GradientWrites& writes, std::span<const From> dh_mtd, std::span<const T> x_mtd,
                          std::span<const T> residual_mtd, std::span<T> dx_mtd) const {
  const kernels::RmsNormSizes sizes{sizes_.tokens(), sizes_.spec.width};
  const std::span<const float> rstd_mt = rstd_mt_.first(sizes_.tokens());
  if (!weight_d_.is_frozen()) {
    writes.Begin(weight_d_);
    kernels::RmsNormWeightBackward<From, T>(sizes, dh_mtd, x_mtd, rstd_mt, weight_d_.gradient());
    writes.Ready(weight_d_);
  }
  kernels::RmsNormBackward<From, T>(sizes, dh_mtd, x_mtd, weight_d_.weight(), rstd_mt, residual_mtd, dx_mtd);
}

template class RmsNorm<float>;
template class RmsNorm<kernels::BFloat16>;
template class RmsNorm<kernels::Float16>;
template void RmsNorm<float>::Backward(const GradientWrites&, std::span<const float>, std::span<const float>,
                                       std::span<const float>, std::span<float>) const;
template void RmsNorm<kernels::BFloat16>::Backward(const GradientWrites&, std::span<const float>,
                                                   std::span<const kernels::BFloat16>,
                                                   std::span<const kernels::BFloat16>,
                                                   std::span<kernels::BFloat16>) const;
template void RmsNorm<kernels::Float16>::Backward(const GradientWrites&, std::span<const float>,
                                                  std::span<const kernels::Float16>, std::span<const kernels::Float16>,
                                                  std::span<kernels::Float16>) const;
template void RmsNorm<kernels::BFloat16>::Backward(const GradientWrites&, std::span<const kernels::BFloat16>,
                                                   std::span<const kernels::BFloat16>,
                                                   std::span<const kernels::BFloat16>,
                                                   std::span<kernels::BFloat16>) const;
template void RmsNorm<kernels::Float16>::Backward(const GradientWrites&, std::span<const kernels::Float16>,
                                                  std::span<const kernels::Float16>, std::span<const kernels::Float16>,
                                                  std::span<kernels::Float16>) const;

}  // namespace plumbline::optimized
