// SPDX-License-Identifier: Apache-2.0
// What clipping by history remembers of the norms of gradients (docs/semantics.md, "Clipping").
#pragma once

#include <cstdint>

namespace plumbline::contract {

struct NormHistory {
  int64_t count = 0;    // n: steps that were not skipped
  double mean = 0;      // running
  double variance = 0;  // running

  friend bool operator==(const NormHistory&, const NormHistory&) = default;
};

}  // namespace plumbline::contract
