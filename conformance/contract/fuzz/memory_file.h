// SPDX-License-Identifier: Apache-2.0
// A file in memory with a path, for readers that take a path. Linux only; nothing reaches a disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

namespace plumbline::contract::fuzz {

class MemoryFile {
 public:
  MemoryFile(const uint8_t* data, size_t size);
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::filesystem::path path() const;

 private:
  int descriptor_;
};

}  // namespace plumbline::contract::fuzz
