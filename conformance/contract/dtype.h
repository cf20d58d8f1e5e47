// SPDX-License-Identifier: Apache-2.0
// Element types of tensors in files and buffers: names and sizes, no conversions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace plumbline::contract {

enum class DType { kF64, kF32, kBF16, kF16, kI64, kI32, kU16, kU8 };

int64_t SizeBytes(DType dtype);

// The name in safetensors files: "F64", "F32", "BF16", "F16", "I64", "I32", "U16", "U8".
std::string_view Name(DType dtype);
std::optional<DType> DTypeFromName(std::string_view name);

}  // namespace plumbline::contract
