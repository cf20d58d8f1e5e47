// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/batches.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>

#include "conformance/contract/case_tensors.h"
#include "conformance/contract/error.h"
#include "conformance/contract/tensor_file.h"

namespace plumbline::contract {
namespace {

// Integers from `least` to limit - 1.
std::vector<int32_t> Take(const TensorFile& file, const char* name, const std::vector<int64_t>& shape, int64_t least,
                          int64_t limit) {
  const HostTensor& tensor = DemandTensor(file, name, DType::kI32, shape, "batches.safetensors");
  std::vector<int32_t> values;
  values.reserve(static_cast<size_t>(tensor.numel()));
  for (int64_t value : ToInt64(tensor)) {
    if (value < least || value >= limit) {
      Fail(ErrorCode::kInvalidArgument, std::string("batches.safetensors: ") + name + " element " +
                                            std::to_string(values.size()) + " is " + std::to_string(value) +
                                            "; allowed: " + std::to_string(least) + " to " + std::to_string(limit - 1));
    }
    values.push_back(static_cast<int32_t>(value));
  }
  return values;
}

void CheckPadding(const Batches& batches) {
  for (int64_t row = 0; row < batches.steps * batches.batch; ++row) {
    for (int64_t position = batches.lengths[static_cast<size_t>(row)]; position < batches.positions; ++position) {
      const int64_t element = row * batches.positions + position;
      const int32_t weight = batches.loss_weights[static_cast<size_t>(element)];
      if (weight == 0) continue;
      Fail(ErrorCode::kInvalidArgument, "batches.safetensors: loss_weights element " + std::to_string(element) +
                                            " is " + std::to_string(weight) + "; allowed: 0, as it is padding");
    }
  }
}

}  // namespace

void CopySample(const Batches& source, SampleIndex from, Batches& target, SampleIndex to) {
  for (auto array : {&Batches::tokens, &Batches::labels, &Batches::loss_weights}) {
    std::copy_n((source.*array).begin() + source.Index(from.step, from.sample, 0), source.positions,
                (target.*array).begin() + target.Index(to.step, to.sample, 0));
  }
  if (source.lengths.empty()) return;
  const int64_t target_row = target.Index(to.step, to.sample, 0) / target.positions;
  target.lengths[static_cast<size_t>(target_row)] = static_cast<int32_t>(source.Length(from.step, from.sample));
}

Batches ReadBatches(const std::filesystem::path& path, int64_t vocab, bool has_lengths) {
  const TensorFile file = ReadTensorFile(path);
  std::set<std::string> names = {"tokens", "labels", "loss_weights"};
  if (has_lengths) names.insert("lengths");
  AllowOnlyTensors(file, names, "batches.safetensors");
  const auto tokens = std::find_if(file.tensors.begin(), file.tensors.end(),
                                   [](const HostTensor& tensor) { return tensor.name == "tokens"; });
  if (tokens == file.tensors.end()) {
    Fail(ErrorCode::kInvalidArgument, "batches.safetensors: tensor \"tokens\" is missing; allowed: I32 [steps, B, T]");
  }
  const std::vector<int64_t>& shape = tokens->shape;
  if (shape.size() != 3) {
    Fail(ErrorCode::kInvalidArgument,
         "batches.safetensors: tokens has " + std::to_string(shape.size()) + " dimensions; allowed: 3, [steps, B, T]");
  }
  Batches batches{shape[0], shape[1], shape[2], {}, {}, {}, 0};
  batches.tokens = Take(file, "tokens", shape, 0, vocab);
  batches.labels = Take(file, "labels", shape, 0, vocab);
  batches.loss_weights = Take(file, "loss_weights", shape, 0, std::numeric_limits<int32_t>::max());
  if (has_lengths) {
    batches.lengths = Take(file, "lengths", {shape[0], shape[1]}, 1, batches.positions + 1);
    CheckPadding(batches);
  }
  return batches;
}

void WriteBatches(const std::filesystem::path& path, const Batches& batches) {
  const std::vector<int64_t> shape = {batches.steps, batches.batch, batches.positions};
  TensorFile file{{MakeI32("tokens", shape, batches.tokens), MakeI32("labels", shape, batches.labels),
                   MakeI32("loss_weights", shape, batches.loss_weights)},
                  {}};
  if (!batches.lengths.empty()) {
    file.tensors.push_back(MakeI32("lengths", {batches.steps, batches.batch}, batches.lengths));
  }
  WriteTensorFile(path, file);
}

}  // namespace plumbline::contract
