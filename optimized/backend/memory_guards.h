// SPDX-License-Identifier: Apache-2.0
// Bytes around every allocation of one rank that nobody may write: a kernel that writes behind its span would else
// change alignment padding, or what is written again later, and no number would show it. They are looked at whenever
// memory is freed and at the end of each step. They are in no books (memory_ledger.h), and see no reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "optimized/backend/memory_ledger.h"

namespace plumbline::optimized {

// On each side of an allocation; a multiple of the alignment that a backend promises.
inline constexpr int64_t kGuardBytes = 64;

// Used by one thread.
class MemoryGuards {
 public:
  // `data` has kGuardBytes of writable memory before it, and as many behind its size_bytes bytes. Fills both.
  void Allocated(std::byte* data, int64_t size_bytes, MemoryCategory category);

  // Looks at both for the last time. Never throws, since destructors call it: what is found is told by Check.
  void Freed(std::byte* data);

  // Looks at the guards of all memory that is allocated now. Internal if one of them, or of memory that was freed, was
  // written: the first that was found, with its side, offset, size and category.
  void Check();

 private:
  struct Guarded {
    int64_t size_bytes;
    MemoryCategory category;
    unsigned char pattern;
  };

  void Look(const std::byte* data, const Guarded& guarded);

  std::map<std::byte*, Guarded> guarded_;
  int64_t num_allocated_ = 0;
  std::string first_written_;  // what was found first, or empty
};

}  // namespace plumbline::optimized
