// SPDX-License-Identifier: Apache-2.0
// See mlp.h; the lines follow those of docs/exact-family.md.
#include "optimized/model/mlp.h"

#include <array>

#include "kernels/fold/fold.h"
#include "kernels/fold_relu/fold_relu.h"
#include "kernels/residual/residual.h"

namespace plumbline::optimized {

template <typename T>
Mlp<T>::Mlp(const ExactSizes& sizes, int64_t layer, Parameter<T> up_df, Parameter<T> down_fd, Backend& backend,
            Scratch<T>& scratch, Arena& arena)
    : sizes_(sizes),
      up_df_(up_df),
      down_fd_(down_fd),
      backend_(backend),
      scratch_(scratch),
      exit_(sizes, contract::Site::kDropoutMlp, layer, arena),
      h_mtd_(arena.Take<T>(sizes.tokens() * sizes.spec.width)),
      up_z_mtf_(arena.Take<T>(sizes.tokens() * sizes.spec.hidden)),
      r_mtf_(arena.Take<T>(sizes.tokens() * sizes.spec.hidden)),
      down_z_mtd_(arena.Take<T>(sizes.tokens() * sizes.spec.width)) {}

template <typename T>
void Mlp<T>::Forward(const MicroBatch& micro_batch, std::span<const T> x_mtd, std::span<T> x_out_mtd) {
  const auto [tokens, d, f] = std::array{sizes_.tokens(), sizes_.spec.width, sizes_.spec.hidden};
  kernels::FoldForward<T, T>(x_mtd, sizes_.bound(), h_mtd_);
  backend_.MatMul(Dense(h_mtd_, tokens, d), Dense(up_df_.weight(), d, f), Dense(up_z_mtf_, tokens, f),
                  WriteMode::kAssign);
  kernels::FoldReluForward<T>(up_z_mtf_, sizes_.bound(), r_mtf_);
  backend_.MatMul(Dense(r_mtf_, tokens, f), Dense(down_fd_.weight(), f, d), Dense(down_z_mtd_, tokens, d),
                  WriteMode::kAssign);
  exit_.Forward(micro_batch, x_mtd, down_z_mtd_, scratch_.first_mtd, x_out_mtd);
}

template <typename T>
void Mlp<T>::Backward(const GradientWrites& writes, std::span<const T> x_mtd, std::span<T> dx_mtd) {
  const auto [tokens, d, f] = std::array{sizes_.tokens(), sizes_.spec.width, sizes_.spec.hidden};
  const std::span<T> dz_mtd = scratch_.first_mtd;
  exit_.Backward(dx_mtd, down_z_mtd_, dz_mtd);
  backend_.MatMul(Dense(r_mtf_, tokens, f).Transposed(), Dense(dz_mtd, tokens, d), Dense(down_fd_.gradient(), f, d),
                  writes.Mode(down_fd_));
  writes.ready(down_fd_.index);

  const std::span<T> du_mtf = scratch_.hidden_mtf;
  backend_.MatMul(Dense(dz_mtd, tokens, d), Dense(down_fd_.weight(), f, d).Transposed(), Dense(du_mtf, tokens, f),
                  WriteMode::kAssign);
  kernels::FoldReluBackward<T>(du_mtf, up_z_mtf_, sizes_.bound(), sizes_.gradient_bound(), du_mtf);
  backend_.MatMul(Dense(h_mtd_, tokens, d).Transposed(), Dense(du_mtf, tokens, f), Dense(up_df_.gradient(), d, f),
                  writes.Mode(up_df_));
  writes.ready(up_df_.index);

  const std::span<T> branch_mtd = scratch_.first_mtd;
  backend_.MatMul(Dense(du_mtf, tokens, f), Dense(up_df_.weight(), d, f).Transposed(), Dense(branch_mtd, tokens, d),
                  WriteMode::kAssign);
  kernels::ResidualBackward<T, T>(branch_mtd, x_mtd, sizes_.bound(), sizes_.gradient_bound(), dx_mtd);
}

template class Mlp<float>;
template class Mlp<kernels::BFloat16>;
template class Mlp<kernels::Float16>;

}  // namespace plumbline::optimized
