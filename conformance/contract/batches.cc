// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/batches.h"

#include <algorithm>
#include <limits>
#include <string>

#include "conformance/contract/case_tensors.h"
#include "conformance/contract/error.h"
#include "conformance/contract/tensor_file.h"

namespace plumbline::contract {
namespace {

std::vector<int32_t> Take(const TensorFile& file, const char* name, const std::vector<int64_t>& shape, int64_t limit) {
  const HostTensor& tensor = DemandTensor(file, name, DType::kI32, shape, "batches.safetensors");
  std::vector<int32_t> values;
  values.reserve(static_cast<size_t>(tensor.numel()));
  for (int64_t value : ToInt64(tensor)) {
    if (value < 0 || value >= limit) {
      Fail(ErrorCode::kInvalidArgument, std::string("batches.safetensors: ") + name + " element " +
                                            std::to_string(values.size()) + " is " + std::to_string(value) +
                                            "; allowed: 0 to " + std::to_string(limit - 1));
    }
    values.push_back(static_cast<int32_t>(value));
  }
  return values;
}

}  // namespace

Batches ReadBatches(const std::filesystem::path& path, int64_t vocab) {
  const TensorFile file = ReadTensorFile(path);
  AllowOnlyTensors(file, {"tokens", "labels", "loss_weights"}, "batches.safetensors");
  // Without tokens the shape does not matter: Take says that they are missing.
  const auto tokens = std::find_if(file.tensors.begin(), file.tensors.end(),
                                   [](const HostTensor& tensor) { return tensor.name == "tokens"; });
  const std::vector<int64_t> shape = tokens == file.tensors.end() ? std::vector<int64_t>(3) : tokens->shape;
  if (shape.size() != 3) {
    Fail(ErrorCode::kInvalidArgument,
         "batches.safetensors: tokens has " + std::to_string(shape.size()) + " dimensions; allowed: 3, [steps, B, T]");
  }
  Batches batches{shape[0], shape[1], shape[2], {}, {}, {}, 0};
  batches.tokens = Take(file, "tokens", shape, vocab);
  batches.labels = Take(file, "labels", shape, vocab);
  batches.loss_weights = Take(file, "loss_weights", shape, std::numeric_limits<int32_t>::max());
  return batches;
}

void WriteBatches(const std::filesystem::path& path, const Batches& batches) {
  const std::vector<int64_t> shape = {batches.steps, batches.batch, batches.positions};
  WriteTensorFile(path, {{MakeI32("tokens", shape, batches.tokens), MakeI32("labels", shape, batches.labels),
                          MakeI32("loss_weights", shape, batches.loss_weights)},
                         {}});
}

}  // namespace plumbline::contract
