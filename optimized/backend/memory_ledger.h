// SPDX-License-Identifier: Apache-2.0
// The books of one rank's memory: bytes by category, now and at the highest point of a step. It allocates nothing;
// counting_backend.h fills it in. What is allocated when: docs/zero3.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace plumbline::optimized {

enum class MemoryCategory {
  kWeights,          // working weights that stay: whole, or this rank's shard
  kGatheredWeights,  // whole weights that exist only around their use (ZeRO 3)
  kGradients,
  kOptimizerState,  // master weights and moments
  kActivations,
  kCommunication,  // where results of collectives arrive before they are used
};
inline constexpr MemoryCategory kMemoryCategories[] = {MemoryCategory::kWeights,     MemoryCategory::kGatheredWeights,
                                                       MemoryCategory::kGradients,   MemoryCategory::kOptimizerState,
                                                       MemoryCategory::kActivations, MemoryCategory::kCommunication};
// "weights", "gathered_weights", "gradients", "optimizer_state", "activations", "communication"
std::string_view Name(MemoryCategory category);

struct MemoryUse {
  int64_t current_bytes = 0;
  int64_t peak_bytes = 0;  // since the step began
  friend bool operator==(const MemoryUse&, const MemoryUse&) = default;
};

// Used by one thread.
class MemoryLedger {
 public:
  void Allocated(MemoryCategory category, int64_t size_bytes);
  // Internal if more is freed than was allocated.
  void Freed(MemoryCategory category, int64_t size_bytes);

  // Peaks begin again at what is allocated now.
  void BeginStep();

  const MemoryUse& of(MemoryCategory category) const { return by_category_[static_cast<size_t>(category)]; }
  // The peak of the sum, which is at most the sum of the peaks.
  const MemoryUse& total() const { return total_; }

 private:
  std::array<MemoryUse, std::size(kMemoryCategories)> by_category_;
  MemoryUse total_;
};

}  // namespace plumbline::optimized
