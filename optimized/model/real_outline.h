// SPDX-License-Identifier: Apache-2.0
// The units of a decoder, from what its embedding, layers and head read. Source: docs/zero3.md, "Groups".
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "optimized/model/model.h"

namespace plumbline::optimized {

inline constexpr int64_t kEmbeddingUnit = 0;
constexpr int64_t LayerUnit(int64_t layer) { return 1 + layer; }
constexpr int64_t HeadUnit(int64_t layers) { return 1 + layers; }

// Canonical indices. Layers follow each other, each with as many parameters.
struct DecoderReads {
  std::vector<int64_t> embedding;
  int64_t layers = 0;
  int64_t first_of_layers = 0;
  int64_t parameters_of_layer = 0;
  std::vector<int64_t> head;
  std::optional<int64_t> unused;  // in a unit of its own, the last one, which is never in use
};

inline ModelOutline OutlineOf(const DecoderReads& reads) {
  ModelOutline outline;
  outline.units.push_back(reads.embedding);
  int64_t next = reads.first_of_layers;
  for (int64_t layer = 0; layer < reads.layers; ++layer) {
    outline.units.emplace_back();
    for (int64_t i = 0; i < reads.parameters_of_layer; ++i) outline.units.back().push_back(next++);
  }
  outline.units.push_back(reads.head);
  if (reads.unused) outline.units.push_back({*reads.unused});
  for (int64_t unit = kEmbeddingUnit; unit <= HeadUnit(reads.layers); ++unit) outline.forward.push_back(unit);
  for (int64_t unit = HeadUnit(reads.layers); unit > kEmbeddingUnit; --unit) outline.backward.push_back(unit);
  return outline;
}

}  // namespace plumbline::optimized
