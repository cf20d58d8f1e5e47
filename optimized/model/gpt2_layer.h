// SPDX-License-Identifier: Apache-2.0
// What the layers of family gpt2 share: their sizes, and scratch memory that no layer keeps between calls. Shape
// suffixes of tensors: m samples, t positions, d width, f hidden, v vocabulary, i heads, h head width, 3 query, key and
// value; one letter per dim (x_mtd). Rows are tokens.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "conformance/contract/model_spec.h"
#include "optimized/model/arena.h"
#include "optimized/model/model.h"
#include "optimized/model/parameter.h"

namespace plumbline::optimized {

struct Gpt2Sizes {
  Gpt2Sizes(const contract::Gpt2Spec& model, uint64_t run_seed, int64_t micro_batch_samples)
      : spec(model), seed(run_seed), samples(micro_batch_samples) {}

  contract::Gpt2Spec spec;
  uint64_t seed;
  int64_t samples;  // of a micro-batch

  int64_t tokens() const { return samples * spec.positions; }
  int64_t stream_elems() const { return tokens() * spec.width; }
  int64_t hidden_elems() const { return tokens() * spec.hidden; }
  int64_t scores_elems() const { return samples * spec.heads * spec.positions * spec.positions; }
};

template <typename T>
struct Gpt2Scratch {
  Gpt2Scratch(const Gpt2Sizes& sizes, Arena& arena)
      : first_mtd(arena.Take<T>(sizes.stream_elems())),
        second_mtd(arena.Take<T>(sizes.stream_elems())),
        heads_mith(arena.Take<T>(sizes.stream_elems())),
        joined_mt3d(arena.Take<T>(3 * sizes.stream_elems())),
        heads_3mith(arena.Take<T>(3 * sizes.stream_elems())),
        hidden_mtf(arena.Take<T>(sizes.hidden_elems())),
        scores_mitt(arena.Take<T>(sizes.scores_elems())),
        float_scores_mitt(arena.Take<float>(sizes.scores_elems())),
        product(arena.Take<float>(std::max(3 * sizes.stream_elems(), sizes.hidden_elems()))) {}

  std::span<T> first_mtd, second_mtd;
  std::span<T> heads_mith;
  std::span<T> joined_mt3d, heads_3mith;
  std::span<T> hidden_mtf;
  std::span<T> scores_mitt;
  // In float also where T is narrower: scores before the softmax, and products before their bias.
  std::span<float> float_scores_mitt, product;
};

}  // namespace plumbline::optimized
