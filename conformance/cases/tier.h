// SPDX-License-Identifier: Apache-2.0
// How much is tried: combinations of so many axis values, and so many steps. Which axes there are does not depend on
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace plumbline::conformance {

enum class Tier { kSmoke, kFull, kNightly };

struct TierSizes {
  std::string_view name;
  int exact_strength = 0;  // all valid tuples of so many axis values occur in family exact,
  int gpt2_strength = 0;   // in family gpt2,
  int llama_strength = 0;  // and in family llama
  int64_t exact_steps = 0;
  size_t exact_layouts = 0;  // at least
  size_t gpt2_layouts = 0;
};

// Smoke: about a minute on two cores. Full: ten. Nightly: an hour at most.
inline constexpr TierSizes kTiers[] = {
    {"smoke", 2, 1, 1, 50, 50, 30}, {"full", 3, 2, 2, 200}, {"nightly", 4, 4, 3, 200}};

inline const TierSizes& SizesOf(Tier tier) { return kTiers[static_cast<int>(tier)]; }

}  // namespace plumbline::conformance
