// SPDX-License-Identifier: Apache-2.0
// See residual_exit.h.
#include "optimized/model/residual_exit.h"

#include <algorithm>

#include "kernels/bf16.h"
#include "kernels/fp16.h"
#include "kernels/residual/residual.h"

namespace plumbline::optimized {

template <typename T>
void ResidualExit<T>::Forward(const MicroBatch& micro_batch, std::span<const T> x_mtd, std::span<T> branch_mtd,
                              std::span<T> x_out_mtd) {
  drop_.Draw(micro_batch);
  drop_.Apply(branch_mtd);
  kernels::ResidualForward<T>(x_mtd, branch_mtd, x_out_mtd);
}

template <typename T>
void ResidualExit<T>::Backward(std::span<const T> dx_mtd, std::span<T> dbranch_mtd) const {
  std::copy(dx_mtd.begin(), dx_mtd.end(), dbranch_mtd.begin());
  drop_.Apply(dbranch_mtd);
}

template class ResidualExit<float>;
template class ResidualExit<kernels::BFloat16>;
template class ResidualExit<kernels::Float16>;

}  // namespace plumbline::optimized
