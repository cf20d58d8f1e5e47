// SPDX-License-Identifier: Apache-2.0
// See memory_ledger.h.
#include "optimized/backend/memory_ledger.h"

#include <algorithm>

#include "conformance/contract/error.h"

namespace plumbline::optimized {
namespace {

void Add(MemoryUse& use, int64_t size_bytes) {
  use.current_bytes += size_bytes;
  contract::Check(use.current_bytes >= 0, "no more memory is freed than was allocated");
  use.peak_bytes = std::max(use.peak_bytes, use.current_bytes);
}

}  // namespace

std::string_view Name(MemoryCategory category) {
  switch (category) {
    case MemoryCategory::kWeights:
      return "weights";
    case MemoryCategory::kGatheredWeights:
      return "gathered_weights";
    case MemoryCategory::kGradients:
      return "gradients";
    case MemoryCategory::kOptimizerState:
      return "optimizer_state";
    case MemoryCategory::kActivations:
      return "activations";
    case MemoryCategory::kCommunication:
      return "communication";
  }
  contract::Fail(contract::ErrorCode::kInternal, "no such category of memory");
}

void MemoryLedger::Allocated(MemoryCategory category, int64_t size_bytes) {
  contract::Check(size_bytes >= 0, "a size in bytes is not negative");
  Add(by_category_[static_cast<size_t>(category)], size_bytes);
  Add(total_, size_bytes);
}

void MemoryLedger::Freed(MemoryCategory category, int64_t size_bytes) {
  contract::Check(size_bytes >= 0, "a size in bytes is not negative");
  Add(by_category_[static_cast<size_t>(category)], -size_bytes);
  Add(total_, -size_bytes);
}

void MemoryLedger::BeginStep() {
  for (MemoryUse& use : by_category_) use.peak_bytes = use.current_bytes;
  total_.peak_bytes = total_.current_bytes;
}

}  // namespace plumbline::optimized
