// SPDX-License-Identifier: Apache-2.0
// The integer decoder of family `exact`: embedding, layers, tied head, with explicit forward and backward.
// Source: docs/exact-family.md.
#pragma once

#include <cstdint>
#include <memory>

#include "conformance/contract/dtype.h"
#include "conformance/contract/model_spec.h"
#include "optimized/model/model.h"

namespace plumbline::optimized {

ModelOutline ExactOutline(const contract::ExactSpec& spec);

struct ExactTraining {
  contract::DType storage = contract::DType::kF32;
  uint64_t seed = 0;    // of dropout
  int64_t samples = 0;  // of every micro-batch
};

// Memory and backend outlive the model. InvalidArgument if storage is none of F32, BF16 and F16.
std::unique_ptr<Model> MakeExactModel(const contract::ExactSpec& spec, const ExactTraining& training,
                                      const ParameterMemory& memory, Backend& backend);

}  // namespace plumbline::optimized
