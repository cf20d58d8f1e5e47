// SPDX-License-Identifier: Apache-2.0
// Implementation of memory_file.h.
#include "conformance/contract/fuzz/memory_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "conformance/contract/fuzz/only_errors.h"

namespace plumbline::contract::fuzz {

MemoryFile::MemoryFile(const uint8_t* data, size_t size) : descriptor_(memfd_create("fuzz", 0)) {
  Demand(descriptor_ >= 0, "memfd_create works");
  size_t written = 0;
  while (written < size) {
    const ssize_t count = write(descriptor_, data + written, size - written);
    Demand(count > 0, "write to memory works");
    written += static_cast<size_t>(count);
  }
}

MemoryFile::~MemoryFile() { close(descriptor_); }

std::filesystem::path MemoryFile::path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

}  // namespace plumbline::contract::fuzz
