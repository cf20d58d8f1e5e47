// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/dtype.h"

namespace plumbline::contract {
namespace {

struct Entry {
  DType dtype;
  std::string_view name;
  int64_t size_bytes;
};

constexpr Entry kEntries[] = {
    {DType::kF64, "F64", 8}, {DType::kF32, "F32", 4}, {DType::kBF16, "BF16", 2}, {DType::kF16, "F16", 2},
    {DType::kI64, "I64", 8}, {DType::kI32, "I32", 4}, {DType::kU16, "U16", 2},   {DType::kU8, "U8", 1},
};

const Entry& EntryOf(DType dtype) { return kEntries[static_cast<int>(dtype)]; }

}  // namespace

int64_t SizeBytes(DType dtype) { return EntryOf(dtype).size_bytes; }

std::string_view Name(DType dtype) { return EntryOf(dtype).name; }

std::optional<DType> DTypeFromName(std::string_view name) {
  for (const Entry& entry : kEntries) {
    if (entry.name == name) return entry.dtype;
  }
  return std::nullopt;
}

}  // namespace plumbline::contract
