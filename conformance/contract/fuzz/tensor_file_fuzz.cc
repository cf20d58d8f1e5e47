// SPDX-License-Identifier: Apache-2.0
// Fuzz target: a safetensors file. What is accepted holds exactly the bytes its shapes say, and never more than the
// input; it is written and read back as the same.
#include <span>

#include "conformance/contract/dtype.h"
#include "conformance/contract/fuzz/only_errors.h"
#include "conformance/contract/fuzz/scratch_folder.h"
#include "conformance/contract/tensor_file.h"

namespace plumbline::contract::fuzz {
namespace {

void DemandSame(const TensorFile& file) {
  const ScratchFolder folder;
  WriteTensorFile(folder / "again.safetensors", file);
  const auto again = ParseOrRefuse([&] { return ReadTensorFile(folder / "again.safetensors"); });
  Demand(again.has_value(), "a file that was written is read");
  Demand(again->metadata == file.metadata, "the metadata are the same");
  Demand(again->tensors.size() == file.tensors.size(), "as many tensors");
  for (const HostTensor& tensor : file.tensors) {
    const HostTensor& other = again->Find(tensor.name);
    Demand(other.dtype == tensor.dtype && other.shape == tensor.shape && other.data == tensor.data,
           "the tensor is the same: " + tensor.name);
  }
}

}  // namespace

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
  DemandSame(*file);
  return true;
}

}  // namespace plumbline::contract::fuzz
