// SPDX-License-Identifier: Apache-2.0
// What every layer of a real family's model needs in one step: sizes, and the dropout's coordinates, from which it
// draws each mask of docs/semantics.md. Sites and elements are the same in all real families.
#pragma once

#include <cstdint>
#include <optional>

#include "conformance/contract/random_stream.h"
#include "reference/ops/inverted_dropout.h"
#include "reference/ops/matrix.h"

namespace plumbline::reference {

// Spec: contract::Gpt2Spec or contract::LlamaSpec.
template <typename Spec>
struct RealStepContext {
  const Spec& spec;
  uint64_t seed = 0;
  int64_t step = 0;

  // The mask of drop₀, drop₂ or drop₃, or none where p = 0.   [tokens, width]
  // Element (sample · T + position) · d + channel is the row-major index.
  std::optional<Matrix> StreamMask(contract::Site site, int64_t layer, int64_t tokens) const {
    if (spec.dropout == 0) return std::nullopt;
    return KeepMask({seed, site, step, layer, 0}, tokens, spec.width, spec.dropout);
  }

  // The mask of drop₁ of one head of one sample, or none where p = 0.   [T, T]
  // Element ((sample · H + head) · T + query) · T + key.
  std::optional<Matrix> ScoresMask(int64_t layer, int64_t sample, int64_t head) const {
    if (spec.dropout == 0) return std::nullopt;
    const int64_t first = (sample * spec.heads + head) * spec.positions * spec.positions;
    return KeepMask({seed, contract::Site::kDropoutScores, step, layer, first}, spec.positions, spec.positions,
                    spec.dropout);
  }

  Matrix Drop(const Matrix& y, const std::optional<Matrix>& mask) const { return InvertedDrop(y, mask, spec.dropout); }
};

}  // namespace plumbline::reference
