// SPDX-License-Identifier: Apache-2.0
// Implements step_output.h.
#include "reference/engine/step_output.h"

#include <string>

namespace plumbline::reference {
namespace {

const Tensors& TensorsOf(const Trainer& trainer, contract::TensorKind kind) {
  static const Tensors kNone;
  switch (kind) {
    case contract::TensorKind::kSecondMoment:
      return kNone;
    case contract::TensorKind::kGradient:
      return trainer.gradient();
    case contract::TensorKind::kMoment:
      return trainer.moment();
    case contract::TensorKind::kMaster:
      return trainer.master();
    case contract::TensorKind::kWeight:
      break;
  }
  return trainer.weight();
}

std::vector<int64_t> ToIntegers(const Matrix& tensor) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < tensor.numel(); ++i) values.push_back(static_cast<int64_t>(tensor[i]));
  return values;
}

}  // namespace

contract::Digest DigestOf(const Matrix& tensor) {
  contract::Digest digest;
  for (int64_t i = 0; i < tensor.numel(); ++i) digest.Add(i, static_cast<int64_t>(tensor[i]));
  return digest;
}

contract::StepRecord RecordOf(const Trainer& trainer, const std::vector<contract::ParameterSpec>& parameters,
                              int64_t step) {
  contract::StepRecord record;
  record.step = step;
  record.loss = trainer.loss();
  record.tokens = trainer.num_weighted_tokens();
  for (const contract::TensorKind kind : contract::kTensorKinds) {
    const Tensors& tensors = TensorsOf(trainer, kind);
    for (size_t i = 0; i < tensors.size(); ++i)
      record.of(kind).push_back({parameters[i].name, 0, parameters[i].numel(), DigestOf(tensors[i])});
  }
  return record;
}

contract::TensorFile DumpOf(const Trainer& trainer, const std::vector<contract::ParameterSpec>& parameters) {
  contract::TensorFile file;
  for (const contract::TensorKind kind : contract::kTensorKinds) {
    const Tensors& tensors = TensorsOf(trainer, kind);
    for (size_t i = 0; i < tensors.size(); ++i) {
      const std::string name = std::string(contract::Name(kind)) + "/" + parameters[i].name + "@0";
      file.tensors.push_back(contract::MakeI64(name, {parameters[i].numel()}, ToIntegers(tensors[i])));
    }
  }
  return file;
}

}  // namespace plumbline::reference
