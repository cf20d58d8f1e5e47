// SPDX-License-Identifier: Apache-2.0
// One step of a real family and its line of the trace: forward and backward of each micro-batch, the update, digests
// over bits. No LibTorch here; the training is behind real_trainer.h.
#pragma once

#include <cstdint>

#include "conformance/contract/case_file.h"
#include "conformance/contract/tensor_file.h"
#include "conformance/contract/trace.h"
#include "conformance/engines/torch_eager/real_trainer.h"

namespace plumbline::conformance::torch_eager {

// The digest of F64, F32, BF16 and F16 elements' bits.
contract::Digest DigestOfBits(const contract::HostTensor& tensor);

// `dump` receives all tensors after the step unless it is null.
contract::StepRecord TrainRealStep(const contract::CaseData& data, RealTrainer& trainer, contract::TraceWriter& trace,
                                   int64_t step, contract::TensorFile* dump);

}  // namespace plumbline::conformance::torch_eager
