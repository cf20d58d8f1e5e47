// SPDX-License-Identifier: Apache-2.0
// See branch_exit.h. The mask of the forward is kept for the backward.
#include "optimized/model/branch_exit.h"

#include "kernels/dropout/dropout.h"
#include "kernels/fold/fold.h"
#include "kernels/residual/residual.h"
#include "optimized/model/dropout_mask.h"

namespace plumbline::optimized {
namespace {

// Of the exact family's dropout, if it has any.
constexpr double kRate = 0.5;
constexpr float kScale = 2;

}  // namespace

template <typename T>
BranchExit<T>::BranchExit(const ExactSizes& sizes, contract::Site site, int64_t layer, Arena& arena)
    : sizes_(sizes), site_(site), layer_(layer) {
  if (sizes.spec.dropout) keep_mtd_ = arena.Take<uint8_t>(sizes.tokens() * sizes.spec.width);
}

template <typename T>
void BranchExit<T>::Forward(const MicroBatch& micro_batch, std::span<const T> x_mtd, std::span<const T> z_mtd,
                            std::span<T> scratch_mtd, std::span<T> x_out_mtd) {
  kernels::FoldForward<T, T>(z_mtd, sizes_.bound(), scratch_mtd);
  if (sizes_.spec.dropout) {
    const int64_t first_element = micro_batch.first_sample * sizes_.spec.positions * sizes_.spec.width;
    FillDropoutMask(sizes_.seed, site_, micro_batch.step, layer_, first_element, DropThreshold(kRate), keep_mtd_);
    kernels::DropoutApply<T>(scratch_mtd, keep_mtd_, kScale, scratch_mtd);
  }
  kernels::ResidualForward<T>(x_mtd, scratch_mtd, x_out_mtd);
}

template <typename T>
void BranchExit<T>::Backward(std::span<const T> dx_mtd, std::span<const T> z_mtd, std::span<T> dz_mtd) const {
  if (sizes_.spec.dropout) {
    kernels::DropoutApply<T>(dx_mtd, keep_mtd_, kScale, dz_mtd);
    kernels::FoldBackward<T>(dz_mtd, z_mtd, sizes_.bound(), dz_mtd);
  } else {
    kernels::FoldBackward<T>(dx_mtd, z_mtd, sizes_.bound(), dz_mtd);
  }
}

template class BranchExit<float>;
template class BranchExit<kernels::BFloat16>;
template class BranchExit<kernels::Float16>;

}  // namespace plumbline::optimized
