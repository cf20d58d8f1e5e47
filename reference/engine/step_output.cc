// SPDX-License-Identifier: Apache-2.0
// Implements step_output.h.
#include "reference/engine/step_output.h"

#include <array>
#include <bit>
#include <cstddef>
#include <string>

namespace plumbline::reference {
namespace {

std::vector<int64_t> ToIntegers(const Matrix& tensor) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < tensor.numel(); ++i) values.push_back(static_cast<int64_t>(tensor[i]));
  return values;
}

contract::HostTensor MakeF64(const std::string& name, const Matrix& tensor) {
  contract::HostTensor result{name, contract::DType::kF64, {tensor.numel()}, {}};
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    const auto bytes = std::bit_cast<std::array<std::byte, sizeof(double)>>(tensor[i]);
    result.data.insert(result.data.end(), bytes.begin(), bytes.end());
  }
  return result;
}

}  // namespace

contract::Digest DigestOfIntegers(const Matrix& tensor) {
  contract::Digest digest;
  for (int64_t i = 0; i < tensor.numel(); ++i) digest.Add(i, static_cast<int64_t>(tensor[i]));
  return digest;
}

contract::Digest DigestOfReals(const Matrix& tensor) {
  contract::Digest digest;
  for (int64_t i = 0; i < tensor.numel(); ++i) digest.AddBits(i, std::bit_cast<uint64_t>(tensor[i]));
  return digest;
}

contract::StepRecord RecordOf(const Trainer& trainer, const std::vector<contract::ParameterSpec>& parameters,
                              int64_t step) {
  contract::StepRecord record;
  record.step = step;
  record.loss = trainer.loss();
  record.tokens = trainer.num_weighted_tokens();
  record.real = trainer.real();
  for (const contract::TensorKind kind : contract::kTensorKinds) {
    const Tensors& tensors = trainer.Of(kind);
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i].numel() == 0) continue;
      const contract::Digest digest = record.real ? DigestOfReals(tensors[i]) : DigestOfIntegers(tensors[i]);
      record.of(kind).push_back({parameters[i].name, 0, parameters[i].numel(), digest});
    }
  }
  return record;
}

contract::TensorFile DumpOf(const Trainer& trainer, const std::vector<contract::ParameterSpec>& parameters) {
  contract::TensorFile file;
  for (const contract::TensorKind kind : contract::kTensorKinds) {
    const Tensors& tensors = trainer.Of(kind);
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i].numel() == 0) continue;
      const std::string name = std::string(contract::Name(kind)) + "/" + parameters[i].name + "@0";
      file.tensors.push_back(trainer.real() ? MakeF64(name, tensors[i])
                                            : contract::MakeI64(name, {parameters[i].numel()}, ToIntegers(tensors[i])));
    }
  }
  return file;
}

}  // namespace plumbline::reference
