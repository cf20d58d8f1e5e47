// SPDX-License-Identifier: Apache-2.0
// NVTX ranges in the domain "plumbline". Names and categories are identities of metrics: they are listed here and stay
// stable. Without a tool attached a range costs about a nanosecond. No engine calls NVTX in another way.
#pragma once

#include <cstdint>

namespace plumbline::contract {

enum class Category : uint32_t { kCompute = 1, kComm = 2, kOptimizer = 3, kIo = 4 };

namespace range {
inline constexpr const char* kStep = "step";
inline constexpr const char* kForward = "forward";
inline constexpr const char* kBackward = "backward";
inline constexpr const char* kReduce = "reduce_gradients";
inline constexpr const char* kOptimizerStep = "optimizer_step";
inline constexpr const char* kGatherWeights = "gather_weights";
inline constexpr const char* kAllReduce = "all_reduce";
inline constexpr const char* kReduceScatter = "reduce_scatter";
inline constexpr const char* kAllGather = "all_gather";
inline constexpr const char* kTrace = "trace";
}  // namespace range

// A range from construction to destruction. `name` is one of range:: and outlives the program.
class ScopedRange {
 public:
  ScopedRange(Category category, const char* name);
  ~ScopedRange();
  ScopedRange(const ScopedRange&) = delete;
  ScopedRange& operator=(const ScopedRange&) = delete;
};

}  // namespace plumbline::contract
