// SPDX-License-Identifier: Apache-2.0
// See attention.h; the lines follow those of docs/exact-family.md.
#include "optimized/model/attention.h"

#include "kernels/causal_fold/causal_fold.h"
#include "kernels/fold/fold.h"
#include "kernels/head_layout/head_layout.h"
#include "kernels/residual/residual.h"

namespace plumbline::optimized {

template <typename T>
Attention<T>::Attention(const ExactSizes& sizes, int64_t layer, const AttentionParameters<T>& parameters,
                        Backend& backend, Scratch<T>& scratch, Arena& arena)
    : sizes_(sizes),
      backend_(backend),
      scratch_(scratch),
      output_dd_(parameters.o_dd),
      exit_(sizes, contract::Site::kDropoutAttention, layer, arena),
      query_(MakeProjection(parameters.q_dd, sizes.spec.heads, arena)),
      key_(MakeProjection(parameters.k_de, sizes.spec.kv_heads, arena)),
      value_(MakeProjection(parameters.v_de, sizes.spec.kv_heads, arena)),
      h_mtd_(arena.Take<T>(sizes.tokens() * sizes.spec.width)),
      scores_z_mitt_(arena.Take<T>(sizes.tokens() * sizes.spec.heads * sizes.spec.positions)),
      scores_mitt_(arena.Take<T>(sizes.tokens() * sizes.spec.heads * sizes.spec.positions)),
      mixed_z_mith_(arena.Take<T>(sizes.tokens() * sizes.spec.width)),
      o_mtd_(arena.Take<T>(sizes.tokens() * sizes.spec.width)),
      out_z_mtd_(arena.Take<T>(sizes.tokens() * sizes.spec.width)) {}

template <typename T>
void Attention<T>::Forward(const MicroBatch& micro_batch, std::span<const T> x_mtd, std::span<T> x_out_mtd) {
  const int64_t tokens = sizes_.tokens();
  const int64_t d = sizes_.spec.width;
  kernels::FoldForward<T, T>(x_mtd, sizes_.bound(), h_mtd_);
  ProjectForward(query_);
  ProjectForward(key_);
  ProjectForward(value_);

  backend_.MatMul(QueryGroups(query_.folded_heads), KeyValueHeads(key_.folded_heads).Transposed(),
                  Scores(scores_z_mitt_), WriteMode::kAssign);
  kernels::CausalFoldForward<T>(sizes_.spec.positions, scores_z_mitt_, sizes_.bound(), scores_mitt_);
  backend_.MatMul(Scores(scores_mitt_), KeyValueHeads(value_.folded_heads), QueryGroups(mixed_z_mith_),
                  WriteMode::kAssign);
  kernels::FoldForward<T, T>(mixed_z_mith_, sizes_.bound(), scratch_.heads_mith);
  kernels::JoinHeads<T>({sizes_.samples, sizes_.spec.positions, sizes_.spec.heads, sizes_.spec.head_width()},
                        scratch_.heads_mith, o_mtd_);

  backend_.MatMul(Dense(o_mtd_, tokens, d), Dense(output_dd_.weight(), d, d), Dense(out_z_mtd_, tokens, d),
                  WriteMode::kAssign);
  exit_.Forward(micro_batch, x_mtd, out_z_mtd_, scratch_.first_mtd, x_out_mtd);
}

template <typename T>
void Attention<T>::Backward(const GradientWrites& writes, std::span<const T> x_mtd, std::span<T> dx_mtd) {
  OutputBackward(writes, dx_mtd);
  const std::span<T> dn_mith = scratch_.heads_mith;
  const std::span<T> dheads = scratch_.more_heads_mith;
  const std::span<T> dheads_kv = dheads.first(key_.z.size());

  const std::span<T> ds_mitt = scratch_.scores_mitt;
  backend_.MatMul(QueryGroups(dn_mith), KeyValueHeads(value_.folded_heads).Transposed(), Scores(ds_mitt),
                  WriteMode::kAssign);
  kernels::CausalFoldBackward<T>(sizes_.spec.positions, ds_mitt, scores_z_mitt_, sizes_.bound(),
                                 sizes_.gradient_bound(), ds_mitt);

  // Value, key, query: reverse canonical order, which is the order of buckets.
  backend_.MatMul(Scores(scores_mitt_).Transposed(), QueryGroups(dn_mith), KeyValueHeads(dheads_kv),
                  WriteMode::kAssign);
  ProjectBackward(writes, value_, dheads_kv, WriteMode::kAssign);
  backend_.MatMul(Scores(ds_mitt).Transposed(), QueryGroups(query_.folded_heads), KeyValueHeads(dheads_kv),
                  WriteMode::kAssign);
  ProjectBackward(writes, key_, dheads_kv, WriteMode::kAccumulate);
  backend_.MatMul(Scores(ds_mitt), KeyValueHeads(key_.folded_heads), QueryGroups(dheads), WriteMode::kAssign);
  ProjectBackward(writes, query_, dheads, WriteMode::kAccumulate);

  // The join folds its branch's gradient itself: dx = G(dx + G(sum) * slope(x)).
  kernels::ResidualBackward<float, T>(scratch_.sum_mtd, x_mtd, sizes_.bound(), sizes_.gradient_bound(), dx_mtd);
}

template <typename T>
void Attention<T>::OutputBackward(const GradientWrites& writes, std::span<const T> dx_mtd) {
  const int64_t tokens = sizes_.tokens();
  const int64_t d = sizes_.spec.width;
  const std::span<T> dz_mtd = scratch_.first_mtd;
  exit_.Backward(dx_mtd, out_z_mtd_, dz_mtd);
  backend_.MatMul(Dense(o_mtd_, tokens, d).Transposed(), Dense(dz_mtd, tokens, d), Dense(output_dd_.gradient(), d, d),
                  writes.Mode(output_dd_));
  writes.ready(output_dd_.index);

  const std::span<T> do_mtd = scratch_.second_mtd;
  backend_.MatMul(Dense(dz_mtd, tokens, d), Dense(output_dd_.weight(), d, d).Transposed(), Dense(do_mtd, tokens, d),
                  WriteMode::kAssign);
  kernels::FoldForward<T, T>(do_mtd, sizes_.gradient_bound(), do_mtd);
  kernels::SplitHeads<T>({sizes_.samples, sizes_.spec.positions, sizes_.spec.heads, sizes_.spec.head_width()}, do_mtd,
                         scratch_.heads_mith);
  kernels::FoldBackward<T>(scratch_.heads_mith, mixed_z_mith_, sizes_.bound(), scratch_.heads_mith);
}

template <typename T>
typename Attention<T>::Projection Attention<T>::MakeProjection(const Parameter<T>& parameter, int64_t heads,
                                                               Arena& arena) const {
  const int64_t elems = sizes_.tokens() * heads * sizes_.spec.head_width();
  return {parameter, heads, arena.Take<T>(elems), arena.Take<T>(elems)};
}

template <typename T>
void Attention<T>::ProjectForward(const Projection& projection) {
  const int64_t out = projection.heads * sizes_.spec.head_width();
  const std::span<T> folded = scratch_.first_mtd.first(projection.z.size());
  backend_.MatMul(Dense(h_mtd_, sizes_.tokens(), sizes_.spec.width),
                  Dense(projection.parameter.weight(), sizes_.spec.width, out),
                  Dense(projection.z, sizes_.tokens(), out), WriteMode::kAssign);
  kernels::FoldForward<T, T>(projection.z, sizes_.bound(), folded);
  kernels::SplitHeads<T>({sizes_.samples, sizes_.spec.positions, projection.heads, sizes_.spec.head_width()}, folded,
                         projection.folded_heads);
}

template <typename T>
void Attention<T>::ProjectBackward(const GradientWrites& writes, const Projection& projection, std::span<T> dheads,
                                   WriteMode sum_mode) {
  const int64_t tokens = sizes_.tokens();
  const int64_t d = sizes_.spec.width;
  const int64_t out = projection.heads * sizes_.spec.head_width();
  const std::span<T> du = scratch_.first_mtd.first(projection.z.size());
  kernels::FoldForward<T, T>(dheads, sizes_.gradient_bound(), dheads);
  kernels::JoinHeads<T>({sizes_.samples, sizes_.spec.positions, projection.heads, sizes_.spec.head_width()}, dheads,
                        du);
  kernels::FoldBackward<T>(du, projection.z, sizes_.bound(), du);

  backend_.MatMul(Dense(h_mtd_, tokens, d).Transposed(), Dense(du, tokens, out),
                  Dense(projection.parameter.gradient(), d, out), writes.Mode(projection.parameter));
  writes.ready(projection.parameter.index);
  backend_.MatMul(Dense(du, tokens, out), Dense(projection.parameter.weight(), d, out).Transposed(),
                  Dense(scratch_.sum_mtd, tokens, d), sum_mode);
}

template <typename T>
Matrices Attention<T>::QueryGroups(std::span<T> heads_mith) const {
  const int64_t rows = sizes_.spec.heads / sizes_.spec.kv_heads * sizes_.spec.positions;
  return Dense(heads_mith, rows, sizes_.spec.head_width(), sizes_.samples * sizes_.spec.kv_heads);
}

template <typename T>
Matrices Attention<T>::KeyValueHeads(std::span<T> heads_mjth) const {
  return Dense(heads_mjth, sizes_.spec.positions, sizes_.spec.head_width(), sizes_.samples * sizes_.spec.kv_heads);
}

template <typename T>
Matrices Attention<T>::Scores(std::span<T> scores_mitt) const {
  const int64_t rows = sizes_.spec.heads / sizes_.spec.kv_heads * sizes_.spec.positions;
  return Dense(scores_mitt, rows, sizes_.spec.positions, sizes_.samples * sizes_.spec.kv_heads);
}

template class Attention<float>;
template class Attention<kernels::BFloat16>;
template class Attention<kernels::Float16>;

}  // namespace plumbline::optimized
