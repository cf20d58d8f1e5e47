// SPDX-License-Identifier: Apache-2.0
// What the layers of family llama share: their sizes, the angles of positions, and scratch memory that no layer keeps
// between calls. Shape suffixes of tensors are those of real_layer.h, and j key/value heads, e their width together, c
// half the width of a head.
#pragma once

#include <cstdint>
#include <span>

#include "conformance/contract/model_spec.h"
#include "kernels/rope/rope.h"
#include "optimized/model/arena.h"
#include "optimized/model/real_layer.h"

namespace plumbline::optimized {

struct LlamaSizes : RealSizes {
  LlamaSizes(const contract::LlamaSpec& model, uint64_t run_seed, int64_t micro_batch_samples)
      : RealSizes(model, run_seed, micro_batch_samples), kv_heads(model.kv_heads), rope_theta(model.rope_theta) {}

  int64_t kv_heads;
  double rope_theta;

  int64_t kv_width() const { return kv_heads * spec.head_width(); }
  int64_t kv_elems() const { return tokens() * kv_width(); }
};

// Cosines and sines of all positions, made when the model is built.
class LlamaAngles {
 public:
  LlamaAngles(const LlamaSizes& sizes, Arena& arena)
      : half_(sizes.spec.head_width() / 2),
        cosine_tc_(arena.Take<float>(sizes.spec.positions * half_)),
        sine_tc_(arena.Take<float>(sizes.spec.positions * half_)) {
    kernels::RopeTable(0, sizes.spec.head_width(), sizes.rope_theta, cosine_tc_, sine_tc_);
  }

  std::span<const float> cosine(int64_t positions) const { return cosine_tc_.first(positions * half_); }
  std::span<const float> sine(int64_t positions) const { return sine_tc_.first(positions * half_); }

 private:
  int64_t half_;
  std::span<float> cosine_tc_, sine_tc_;
};

template <typename T>
struct LlamaScratch {
  LlamaScratch(const LlamaSizes& sizes, Arena& arena)
      : branch_mtd(arena.Take<T>(sizes.stream_elems())),
        joined_mtd(arena.Take<T>(sizes.stream_elems())),
        heads_mith(arena.Take<T>(sizes.stream_elems())),
        joined_mte(arena.Take<T>(sizes.kv_elems())),
        heads_mjth(arena.Take<T>(sizes.kv_elems())),
        gate_mtf(arena.Take<T>(sizes.hidden_elems())),
        up_mtf(arena.Take<T>(sizes.hidden_elems())),
        scores_mitt(arena.Take<T>(sizes.scores_elems())),
        float_scores_mitt(arena.Take<float>(sizes.scores_elems())),
        sum_mtd(arena.Take<float>(sizes.stream_elems())) {}

  std::span<T> branch_mtd;              // what a branch adds to the stream, and its gradient
  std::span<T> joined_mtd, heads_mith;  // query, mixed heads and their gradients, in both layouts
  std::span<T> joined_mte, heads_mjth;  // key, value and their gradients
  std::span<T> gate_mtf, up_mtf;        // gradients
  std::span<T> scores_mitt;             // gradient
  // In float also where T is narrower: scores before the softmax, and the gradient of a norm's output, which is a sum
  // of several products whose partial sums T would round.
  std::span<float> float_scores_mitt, sum_mtd;
};

}  // namespace plumbline::optimized
