// SPDX-License-Identifier: Apache-2.0
// What the exact layers share: their sizes, and scratch memory that no layer keeps between calls. Shape suffixes of
// tensors: m samples, t positions, d width, e key/value width, f hidden, v vocabulary, i query heads, j key/value
// heads, h head width; one letter per dim (x_mtd).
#pragma once

#include <cstdint>
#include <span>

#include "conformance/contract/model_spec.h"
#include "kernels/bf16.h"
#include "optimized/model/arena.h"
#include "optimized/model/model.h"
#include "optimized/model/parameter.h"

namespace plumbline::optimized {

struct ExactSizes {
  ExactSizes(const contract::ExactSpec& model, uint64_t run_seed, int64_t micro_batch_samples)
      : spec(model), seed(run_seed), samples(micro_batch_samples) {}

  contract::ExactSpec spec;
  uint64_t seed;
  int64_t samples;       // of a micro-batch
  float loss_scale = 1;  // all gradients of the micro-batch are that many times those of the loss

  int64_t tokens() const { return samples * spec.positions; }
  float bound() const { return static_cast<float>(spec.fold_bound); }
  float gradient_bound() const { return loss_scale * static_cast<float>(spec.gradient_fold_bound); }
};

template <typename T>
struct Scratch {
  Scratch(const ExactSizes& sizes, Arena& arena)
      : first_mtd(arena.Take<T>(sizes.tokens() * sizes.spec.width)),
        second_mtd(arena.Take<T>(sizes.tokens() * sizes.spec.width)),
        heads_mith(arena.Take<T>(sizes.tokens() * sizes.spec.width)),
        more_heads_mith(arena.Take<T>(sizes.tokens() * sizes.spec.width)),
        scores_mitt(arena.Take<T>(sizes.tokens() * sizes.spec.heads * sizes.spec.positions)),
        hidden_mtf(arena.Take<T>(sizes.tokens() * sizes.spec.hidden)),
        sum_mtd(arena.Take<float>(sizes.tokens() * sizes.spec.width)) {}

  std::span<T> first_mtd, second_mtd;
  std::span<T> heads_mith, more_heads_mith;
  std::span<T> scores_mitt;
  std::span<T> hidden_mtf;
  // In float also where T is narrower: it holds sums of several products, whose partial sums T could round.
  std::span<float> sum_mtd;
};

}  // namespace plumbline::optimized
