// SPDX-License-Identifier: Apache-2.0
// See linear.h.
#include "optimized/model/linear.h"

#include "kernels/bias/bias.h"
#include "optimized/model/arena.h"

namespace plumbline::optimized {

template <typename T>
void Linear<T>::Forward(int64_t rows, std::span<T> x, std::span<float> product, std::span<T> y) const {
  const std::span<float> sums = product.first(y.size());
  backend_.MatMul(Dense(x, rows, in_), Dense(weight_.weight(), in_, out_), Dense(sums, rows, out_), WriteMode::kAssign);
  kernels::BiasForward<float, T>(rows, sums, bias_.weight(), y);
}

template <typename T>
void Linear<T>::Backward(const GradientWrites& writes, int64_t rows, std::span<T> x, std::span<T> dy,
                         std::span<T> dx) const {
  if (!bias_.is_frozen()) {
    writes.Begin(bias_);
    kernels::BiasBackward<T>(rows, dy, bias_.gradient());
    writes.Ready(bias_);
  }
  if (!weight_.is_frozen()) {
    backend_.MatMul(Dense(x, rows, in_).Transposed(), Dense(dy, rows, out_), Dense(weight_.gradient(), in_, out_),
                    writes.Mode(weight_));
    writes.Ready(weight_);
  }
  backend_.MatMul(Dense(dy, rows, out_), Dense(weight_.weight(), in_, out_).Transposed(), Dense(dx, rows, in_),
                  WriteMode::kAssign);
}

template class Linear<float>;
template class Linear<kernels::BFloat16>;
template class Linear<kernels::Float16>;

}  // namespace plumbline::optimized
