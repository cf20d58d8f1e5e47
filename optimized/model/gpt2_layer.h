// SPDX-License-Identifier: Apache-2.0
// Scratch memory that the layers of family gpt2 share and that no layer keeps between calls. Shape suffixes of tensors
// are those of real_layer.h, and 3 for query, key and value.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "optimized/model/arena.h"
#include "optimized/model/real_layer.h"

namespace plumbline::optimized {

template <typename T>
struct Gpt2Scratch {
  Gpt2Scratch(const RealSizes& sizes, Arena& arena)
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
