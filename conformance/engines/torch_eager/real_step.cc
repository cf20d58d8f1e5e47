// SPDX-License-Identifier: Apache-2.0
// Implementation of real_step.h.
#include "conformance/engines/torch_eager/real_step.h"

#include <cstring>
#include <string>
#include <utility>

#include "conformance/contract/digest.h"
#include "conformance/contract/instrumentation.h"

namespace plumbline::conformance::torch_eager {
namespace {

using contract::Category;
using contract::ScopedRange;
using contract::TensorKind;
namespace range = contract::range;

// One rank holds everything, so every slice is a whole tensor.
void Report(const contract::CaseData& data, const RealTrainer& trainer, contract::StepRecord& record,
            contract::TensorFile* dump) {
  for (const TensorKind kind : contract::kTensorKinds) {
    for (size_t i = 0; i < data.parameters.size(); ++i) {
      contract::HostTensor tensor = trainer.Values(kind, i);
      if (tensor.data.empty()) continue;  // no such moment, or frozen
      record.of(kind).push_back({tensor.name, 0, tensor.numel(), DigestOfBits(tensor)});
      if (dump == nullptr) continue;
      tensor.name = std::string(Name(kind)) + "/" + tensor.name + "@0";
      dump->tensors.push_back(std::move(tensor));
    }
  }
}

// Of elements that are as wide as `Bits`: a copy of a size that is known costs no call.
template <typename Bits>
contract::Digest DigestOfElements(const contract::HostTensor& tensor) {
  contract::Digest digest;
  const int64_t numel = tensor.numel();
  for (int64_t i = 0; i < numel; ++i) {
    Bits bits = 0;
    std::memcpy(&bits, tensor.data.data() + i * static_cast<int64_t>(sizeof bits), sizeof bits);
    digest.AddBits(i, bits);
  }
  return digest;
}

}  // namespace

contract::Digest DigestOfBits(const contract::HostTensor& tensor) {
  switch (contract::SizeBytes(tensor.dtype)) {
    case sizeof(uint16_t):
      return DigestOfElements<uint16_t>(tensor);
    case sizeof(uint32_t):
      return DigestOfElements<uint32_t>(tensor);
    default:
      return DigestOfElements<uint64_t>(tensor);
  }
}

// The phase `reduce` has no mark: there is one rank.
contract::StepRecord TrainRealStep(const contract::CaseData& data, RealTrainer& trainer, contract::TraceWriter& trace,
                                   int64_t step, contract::TensorFile* dump) {
  const auto mark = [&](const char* phase) {
    if (data.spec.phase_marks) trace.Phase(step, phase);
  };
  contract::StepRecord record;
  record.step = step;
  record.tokens = trainer.NumTokens(step);
  for (int64_t a = 0; a < data.spec.config.accumulation_steps; ++a) {
    {
      mark("forward");
      const ScopedRange scope(Category::kCompute, range::kForward);
      record.loss += trainer.Forward(step, a);
    }
    mark("backward");
    const ScopedRange scope(Category::kCompute, range::kBackward);
    trainer.Backward();
  }
  {
    mark("step");
    const ScopedRange scope(Category::kOptimizer, range::kOptimizerStep);
    record.real = trainer.Update(step);
  }
  const ScopedRange scope(Category::kIo, range::kTrace);
  Report(data, trainer, record, dump);
  return record;
}

}  // namespace plumbline::conformance::torch_eager
