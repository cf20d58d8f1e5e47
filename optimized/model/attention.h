// SPDX-License-Identifier: Apache-2.0
// The attention of an exact layer with its residual join, forward and backward; grouped key/value heads included.
//
// Query heads that share a key/value head are contiguous, so in head-major layout [m, j, (i/j) * t, h] each group is
// one tall matrix: scores, mixing and all gradients are products over a uniformly strided batch of m * j, and the sums
// over a group's query heads (dk, dv) happen inside the products. Source: docs/exact-family.md, "Forward" and
// "Backward".
#pragma once

#include <cstdint>
#include <span>

#include "optimized/model/branch_exit.h"
#include "optimized/model/layer.h"

namespace plumbline::optimized {

template <typename T>
struct AttentionParameters {
  Parameter<T> q_dd, k_de, v_de, o_dd;
};

template <typename T>
class Attention {
 public:
  Attention(const ExactSizes& sizes, int64_t layer, const AttentionParameters<T>& parameters, Backend& backend,
            Scratch<T>& scratch, Arena& arena);

  void Forward(const MicroBatch& micro_batch, std::span<const T> x_mtd, std::span<T> x_out_mtd);

  // dx: in the gradient of the stream after the join, out that of the stream before it, x.
  void Backward(const GradientWrites& writes, std::span<const T> x_mtd, std::span<T> dx_mtd);

 private:
  // One of q, k, v: z = h W unfolded, and fold(z) in head-major layout.
  struct Projection {
    Parameter<T> parameter;
    int64_t heads;
    std::span<T> z;
    std::span<T> folded_heads;
  };

  Projection MakeProjection(const Parameter<T>& parameter, int64_t heads, Arena& arena) const;
  void ProjectForward(const Projection& projection);
  // From the complete, unfolded gradient of folded_heads (overwritten): the weight's gradient, and this projection's
  // share of dh into sum_mtd.
  void ProjectBackward(const GradientWrites& writes, const Projection& projection, std::span<T> dheads,
                       WriteMode sum_mode);
  // The gradient of the mixed heads before their fold, dn, into scratch.heads_mith.
  void OutputBackward(const GradientWrites& writes, std::span<const T> dx_mtd);

  Matrices QueryGroups(std::span<T> heads_mith) const;
  Matrices KeyValueHeads(std::span<T> heads_mjth) const;
  Matrices Scores(std::span<T> scores_mitt) const;

  const ExactSizes& sizes_;
  Backend& backend_;
  Scratch<T>& scratch_;
  Parameter<T> output_dd_;
  BranchExit<T> exit_;
  Projection query_, key_, value_;
  std::span<T> h_mtd_, scores_z_mitt_, scores_mitt_, mixed_z_mith_, o_mtd_, out_z_mtd_;
};

}  // namespace plumbline::optimized
