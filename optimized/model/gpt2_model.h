// SPDX-License-Identifier: Apache-2.0
// The decoder of family gpt2: embedding, layers, head, with explicit forward and backward. Frozen parameters have no
// gradient and are not reported; an unused one has a gradient of zero and is. Source: docs/semantics.md, "Family gpt2".
#pragma once

#include <cstdint>
#include <memory>

#include "conformance/contract/dtype.h"
#include "conformance/contract/model_spec.h"
#include "optimized/model/model.h"

namespace plumbline::optimized {

// An unused parameter is in a unit of its own, the last one, which is never in use.
ModelOutline Gpt2Outline(const contract::Gpt2Spec& spec);

// `samples` is the size of every micro-batch. `seed` is that of dropout. Memory and backend outlive the model; the
// gradients' table holds null for each frozen parameter and for no other.
// InvalidArgument if storage is none of F32, BF16 and F16, or the spec is not valid.
std::unique_ptr<Model> MakeGpt2Model(const contract::Gpt2Spec& spec, contract::DType storage, uint64_t seed,
                                     int64_t samples, const ParameterMemory& memory, Backend& backend);

}  // namespace plumbline::optimized
