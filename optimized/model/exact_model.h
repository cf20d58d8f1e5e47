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

// `samples` is the size of every micro-batch. `seed` is that of dropout. Memory and backend outlive the model.
// InvalidArgument if storage is neither F32 nor BF16.
std::unique_ptr<Model> MakeExactModel(const contract::ExactSpec& spec, contract::DType storage, uint64_t seed,
                                      int64_t samples, const ParameterMemory& memory, Backend& backend);

}  // namespace plumbline::optimized
