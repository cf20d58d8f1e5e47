// SPDX-License-Identifier: Apache-2.0
// One parameter's update by the optimizer of the config, docs/semantics.md, "One step", 5. This is the list of the real
// families' optimizers; what each computes is in its own file.
#pragma once

#include <cstdint>

#include "conformance/contract/run_config.h"
#include "reference/ops/matrix.h"

namespace plumbline::reference {

// What an optimizer keeps of a parameter. A moment that it has not has no elements.
struct ParameterState {
  Matrix moment;
  Matrix second_moment;
  Matrix master;
};

// The state after the update.
//   gradient g after clipping, of the master weight's shape
//   t        1 in the first update
//   lr, weight_decay, params: those of the parameter's group in this step
// Errors: Unsupported for an optimizer that is not one of the list.
ParameterState UpdateParameter(contract::OptimizerKind optimizer, const Matrix& gradient, const ParameterState& before,
                               int64_t t, double lr, double weight_decay, const contract::OptimizerParams& params);

}  // namespace plumbline::reference
