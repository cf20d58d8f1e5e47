// SPDX-License-Identifier: Apache-2.0
// The one place that states in which order the techniques of parallel training are applied to a model.
#pragma once

#include <memory>

#include "conformance/contract/case_file.h"
#include "optimized/comm/communicator.h"
#include "optimized/engine/training.h"

namespace plumbline::optimized {

// Builds the training of one rank. To be called in that rank's thread; data and communicator outlive the result.
// Unsupported, naming the field, if the case asks for what this engine does not have.
std::unique_ptr<Training> Parallelize(const contract::CaseData& data, Communicator& communicator);

}  // namespace plumbline::optimized
