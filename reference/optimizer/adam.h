// SPDX-License-Identifier: Apache-2.0
// Adam with weight decay in the gradient, docs/semantics.md (Kingma, Ba 2015, algorithm 1; PyTorch): one tensor's
// update.
#pragma once

#include <cstdint>

#include "conformance/contract/run_config.h"
#include "reference/ops/matrix.h"
#include "reference/optimizer/adamw.h"

namespace plumbline::reference {

// g ← g + λ p      then AdamW without decay
// Arguments are AdamW's: the moments see the decay.
AdamWResult Adam(const Matrix& gradient, const Matrix& moment, const Matrix& second_moment, const Matrix& master,
                 int64_t t, double lr, double weight_decay, const contract::OptimizerParams& params);

}  // namespace plumbline::reference
