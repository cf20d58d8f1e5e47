// SPDX-License-Identifier: Apache-2.0
// See projection.h.
#include "optimized/model/projection.h"

namespace plumbline::optimized {

template <typename T>
void Projection<T>::Forward(int64_t rows, std::span<T> x, std::span<T> y) const {
  backend_.MatMul(Dense(x, rows, in_), Dense(weight_.weight(), in_, out_), Dense(y, rows, out_), WriteMode::kAssign);
}

template <typename T>
template <typename U>
void Projection<T>::Backward(const GradientWrites& writes, int64_t rows, std::span<T> x, std::span<T> dy,
                             std::span<U> dx, WriteMode dx_mode) const {
  if (!weight_.is_frozen()) {
    backend_.MatMul(Dense(x, rows, in_).Transposed(), Dense(dy, rows, out_), Dense(weight_.gradient(), in_, out_),
                    writes.Mode(weight_));
    writes.Ready(weight_);
  }
  backend_.MatMul(Dense(dy, rows, out_), Dense(weight_.weight(), in_, out_).Transposed(), Dense(dx, rows, in_),
                  dx_mode);
}

template class Projection<float>;
template class Projection<kernels::BFloat16>;
template class Projection<kernels::Float16>;
template void Projection<float>::Backward(const GradientWrites&, int64_t, std::span<float>, std::span<float>,
                                          std::span<float>, WriteMode) const;
template void Projection<kernels::BFloat16>::Backward(const GradientWrites&, int64_t, std::span<kernels::BFloat16>,
                                                      std::span<kernels::BFloat16>, std::span<float>, WriteMode) const;
template void Projection<kernels::Float16>::Backward(const GradientWrites&, int64_t, std::span<kernels::Float16>,
                                                     std::span<kernels::Float16>, std::span<float>, WriteMode) const;
template void Projection<kernels::BFloat16>::Backward(const GradientWrites&, int64_t, std::span<kernels::BFloat16>,
                                                      std::span<kernels::BFloat16>, std::span<kernels::BFloat16>,
                                                      WriteMode) const;
template void Projection<kernels::Float16>::Backward(const GradientWrites&, int64_t, std::span<kernels::Float16>,
                                                     std::span<kernels::Float16>, std::span<kernels::Float16>,
                                                     WriteMode) const;

}  // namespace plumbline::optimized
