// SPDX-License-Identifier: Apache-2.0
// See memory_guards.h.
#include "optimized/backend/memory_guards.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "conformance/contract/error.h"

namespace plumbline::optimized {
namespace {

// Small negative numbers in every floating-point type: NaN would stay NaN whatever a kernel adds to it, and large
// numbers would absorb what is added. Neighbours differ, so that what is copied from one guard into another shows.
constexpr int kFirstPattern = 0x81;
constexpr int kNumPatterns = 61;

// Offset of the first byte of a guard that is not its pattern's, or -1.
int64_t FirstWritten(const std::byte* guard, unsigned char pattern) {
  const std::byte* const end = guard + kGuardBytes;
  const std::byte* const found = std::find_if(guard, end, [&](std::byte b) { return b != std::byte{pattern}; });
  return found == end ? -1 : found - guard;
}

}  // namespace

void MemoryGuards::Allocated(std::byte* data, int64_t size_bytes, MemoryCategory category) {
  const auto pattern = static_cast<unsigned char>(kFirstPattern + num_allocated_++ % kNumPatterns);
  std::memset(data - kGuardBytes, pattern, static_cast<size_t>(kGuardBytes));
  std::memset(data + size_bytes, pattern, static_cast<size_t>(kGuardBytes));
  guarded_[data] = {size_bytes, category, pattern};
}

void MemoryGuards::Freed(std::byte* data) {
  const auto found = guarded_.find(data);
  if (found == guarded_.end()) return;
  Look(data, found->second);
  guarded_.erase(found);
}

void MemoryGuards::Check() {
  for (const auto& [data, guarded] : guarded_) Look(data, guarded);
  contract::Check(first_written_.empty(), first_written_);
}

void MemoryGuards::Look(const std::byte* data, const Guarded& guarded) {
  if (!first_written_.empty()) return;
  const auto tell = [&](int64_t offset, std::string_view side) {
    first_written_ = "nobody writes outside a buffer: a byte " + std::to_string(offset) + " bytes " +
                     std::string(side) + " a buffer of " + std::to_string(guarded.size_bytes) + " bytes of " +
                     std::string(Name(guarded.category)) + " was written";
  };
  const int64_t before = FirstWritten(data - kGuardBytes, guarded.pattern);
  const int64_t behind = FirstWritten(data + guarded.size_bytes, guarded.pattern);
  if (before >= 0) tell(kGuardBytes - before, "before");
  if (behind >= 0) tell(behind, "behind the end of");
}

}  // namespace plumbline::optimized
