// SPDX-License-Identifier: Apache-2.0
// safetensors files: a strict reader and a writer, for host tensors. Limits and layout: docs/formats.md.
// The reader trusts nothing: sizes are checked before anything is allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/contract/dtype.h"

namespace plumbline::contract {

struct HostTensor {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::vector<std::byte> data;

  int64_t numel() const;
};

struct TensorFile {
  std::vector<HostTensor> tensors;  // in file order (by offset)
  std::map<std::string, std::string> metadata;

  // Throws InvalidArgument naming the tensor if it is absent.
  const HostTensor& Find(std::string_view name) const;
};

inline constexpr uint64_t kMaxHeaderBytes = uint64_t{16} << 20;

// `where` begins each error message, usually the file's name.
TensorFile ParseTensorFile(std::span<const std::byte> bytes, std::string_view where);
TensorFile ReadTensorFile(const std::filesystem::path& path);
// folder / name, which messages call by `name` (ReadFileOf).
TensorFile ReadTensorFile(const std::filesystem::path& folder, const std::string& name);

// Writes a temporary neighbour and renames it, so that a reader never sees half a file.
void WriteTensorFile(const std::filesystem::path& path, const TensorFile& file);

// Integer values of a tensor of any numeric type; InvalidArgument if an element is not an integer (or not finite).
std::vector<int64_t> ToInt64(const HostTensor& tensor);

HostTensor MakeI64(std::string name, std::vector<int64_t> shape, std::span<const int64_t> values);
HostTensor MakeI32(std::string name, std::vector<int64_t> shape, std::span<const int32_t> values);
HostTensor MakeF32(std::string name, std::vector<int64_t> shape, std::span<const float> values);

}  // namespace plumbline::contract
