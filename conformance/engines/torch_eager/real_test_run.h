// SPDX-License-Identifier: Apache-2.0
// What the tests of the real families do with a trainer: a whole step, and a look at values as doubles.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/contract/case_file.h"
#include "conformance/contract/tensor_file.h"
#include "conformance/contract/trace.h"
#include "conformance/engines/torch_eager/real_trainer.h"

namespace plumbline::conformance::torch_eager {

// Of elements F64, F32, BF16 or F16.
std::vector<double> Doubles(const contract::HostTensor& tensor);

// Internal if there is none.
size_t IndexOf(const contract::CaseData& data, const std::string& parameter);

// All micro-batches, then the update.
contract::RealStep TrainStep(RealTrainer& trainer, const contract::CaseData& data, int64_t step);

}  // namespace plumbline::conformance::torch_eager
