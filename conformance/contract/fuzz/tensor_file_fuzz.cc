// SPDX-License-Identifier: Apache-2.0
// Fuzz target: a safetensors file. What is accepted holds exactly the bytes its shapes say, and never more than the
// input.
#include <span>

#include "conformance/contract/dtype.h"
#include "conformance/contract/fuzz/only_errors.h"
#include "conformance/contract/tensor_file.h"

namespace plumbline::contract::fuzz {

bool Accepts(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto file = ParseOrRefuse([&] { return ParseTensorFile(bytes, "input"); });
  if (!file.has_value()) return false;
  size_t total = 0;
  for (const HostTensor& tensor : file->tensors) {
    total += tensor.data.size();
    const auto stated = static_cast<__int128>(tensor.numel()) * SizeBytes(tensor.dtype);
    Demand(stated == static_cast<__int128>(tensor.data.size()), "shape and data agree: " + tensor.name);
    Demand(&file->Find(tensor.name) == &tensor, "names are unique: " + tensor.name);
    const auto values = ParseOrRefuse([&] { return ToInt64(tensor); });
    Demand(!values.has_value() || std::ssize(*values) == tensor.numel(), "one value an element: " + tensor.name);
  }
  Demand(total + 8 <= size, "no more data than the input has");
  return true;
}

}  // namespace plumbline::contract::fuzz
