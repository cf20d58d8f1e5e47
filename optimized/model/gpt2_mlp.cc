// SPDX-License-Identifier: Apache-2.0
// See gpt2_mlp.h; the lines follow those of docs/semantics.md.
#include "optimized/model/gpt2_mlp.h"

#include "kernels/gelu_tanh/gelu_tanh.h"

namespace plumbline::optimized {

template <typename T>
Gpt2Mlp<T>::Gpt2Mlp(const RealSizes& sizes, int64_t layer, std::span<const Parameter<T>> parameters, Backend& backend,
                    Gpt2Scratch<T>& scratch, Arena& arena)
    : sizes_(sizes),
      scratch_(scratch),
      norm_(sizes, parameters[0], parameters[1], arena),
      up_(sizes.spec.width, sizes.spec.hidden, parameters[2], parameters[3], backend),
      down_(sizes.spec.hidden, sizes.spec.width, parameters[4], parameters[5], backend),
      exit_(sizes, contract::Site::kDropoutMlpOut, layer, arena),
      h_mtd_(arena.Take<T>(sizes.stream_elems())),
      u_mtf_(arena.Take<T>(sizes.hidden_elems())),
      g_mtf_(arena.Take<T>(sizes.hidden_elems())) {}

template <typename T>
void Gpt2Mlp<T>::Forward(const MicroBatch& micro_batch, std::span<const T> x_mtd, std::span<T> x_out_mtd) {
  norm_.Forward(x_mtd, h_mtd_);
  up_.Forward(sizes_.tokens(), h_mtd_, scratch_.product, u_mtf_);
  kernels::GeluTanhForward<T>(u_mtf_, g_mtf_);
  const std::span<T> branch_mtd = scratch_.first_mtd;
  down_.Forward(sizes_.tokens(), g_mtf_, scratch_.product, branch_mtd);
  exit_.Forward(micro_batch, x_mtd, branch_mtd, x_out_mtd);
}

template <typename T>
void Gpt2Mlp<T>::Backward(const GradientWrites& writes, std::span<const T> x_mtd, std::span<T> dx_mtd) {
  const std::span<T> dbranch_mtd = scratch_.first_mtd;
  exit_.Backward(dx_mtd, dbranch_mtd);
  const std::span<T> du_mtf = scratch_.hidden_mtf;
  down_.Backward(writes, sizes_.tokens(), g_mtf_, dbranch_mtd, du_mtf);
  kernels::GeluTanhBackward<T>(du_mtf, u_mtf_, du_mtf);
  const std::span<T> dh_mtd = scratch_.first_mtd;
  up_.Backward(writes, sizes_.tokens(), h_mtd_, du_mtf, dh_mtd);
  norm_.Backward(writes, dh_mtd, x_mtd, dx_mtd, dx_mtd);
}

template class Gpt2Mlp<float>;
template class Gpt2Mlp<kernels::BFloat16>;
template class Gpt2Mlp<kernels::Float16>;

}  // namespace plumbline::optimized
