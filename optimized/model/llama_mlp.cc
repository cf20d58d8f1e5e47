// SPDX-License-Identifier: Apache-2.0
// See llama_mlp.h; the lines follow those of docs/semantics.md.
#include "optimized/model/llama_mlp.h"

#include "kernels/swiglu/swiglu.h"

namespace plumbline::optimized {

template <typename T>
LlamaMlp<T>::LlamaMlp(const LlamaSizes& sizes, int64_t layer, std::span<const Parameter<T>> parameters,
                      Backend& backend, LlamaScratch<T>& scratch, Arena& arena)
    : sizes_(sizes),
      scratch_(scratch),
      norm_(sizes, parameters[0], arena),
      gate_(sizes.spec.width, sizes.spec.hidden, parameters[1], backend),
      up_(sizes.spec.width, sizes.spec.hidden, parameters[2], backend),
      down_(sizes.spec.hidden, sizes.spec.width, parameters[3], backend),
      exit_(sizes, contract::Site::kDropoutMlpOut, layer, arena),
      h_mtd_(arena.Take<T>(sizes.stream_elems())),
      g_mtf_(arena.Take<T>(sizes.hidden_elems())),
      u_mtf_(arena.Take<T>(sizes.hidden_elems())),
      a_mtf_(arena.Take<T>(sizes.hidden_elems())) {}

template <typename T>
void LlamaMlp<T>::Forward(const MicroBatch& micro_batch, std::span<const T> x_mtd, std::span<T> x_out_mtd) {
  const int64_t tokens = sizes_.tokens(), hidden = sizes_.hidden_elems();
  norm_.Forward(x_mtd, h_mtd_.first(sizes_.stream_elems()));
  gate_.Forward(tokens, h_mtd_, g_mtf_);
  up_.Forward(tokens, h_mtd_, u_mtf_);
  kernels::SwigluForward<T>(g_mtf_.first(hidden), u_mtf_.first(hidden), a_mtf_.first(hidden));
  const std::span<T> branch_mtd = scratch_.branch_mtd.first(sizes_.stream_elems());
  down_.Forward(tokens, a_mtf_, branch_mtd);
  exit_.Forward(micro_batch, x_mtd, branch_mtd, x_out_mtd);
}

template <typename T>
void LlamaMlp<T>::Backward(const GradientWrites& writes, std::span<const T> x_mtd, std::span<T> dx_mtd) {
  const int64_t tokens = sizes_.tokens(), hidden = sizes_.hidden_elems();
  const std::span<T> dbranch_mtd = scratch_.branch_mtd.first(sizes_.stream_elems());
  exit_.Backward(dx_mtd, dbranch_mtd);
  const std::span<T> dgate_mtf = scratch_.gate_mtf.first(hidden), dup_mtf = scratch_.up_mtf.first(hidden);
  const std::span<T> da_mtf = dgate_mtf;  // in place
  down_.Backward(writes, tokens, a_mtf_, dbranch_mtd, da_mtf, WriteMode::kAssign);
  kernels::SwigluBackward<T>(da_mtf, g_mtf_.first(hidden), u_mtf_.first(hidden), dgate_mtf, dup_mtf);
  up_.Backward(writes, tokens, h_mtd_, dup_mtf, scratch_.sum_mtd, WriteMode::kAssign);
  gate_.Backward(writes, tokens, h_mtd_, dgate_mtf, scratch_.sum_mtd, WriteMode::kAccumulate);
  const std::span<const float> dh_mtd = scratch_.sum_mtd.first(sizes_.stream_elems());
  norm_.Backward(writes, dh_mtd, x_mtd, dx_mtd, dx_mtd);
}

template class LlamaMlp<float>;
template class LlamaMlp<kernels::BFloat16>;
template class LlamaMlp<kernels::Float16>;

}  // namespace plumbline::optimized
