// SPDX-License-Identifier: Apache-2.0
// What an engine of a real family holds before a step.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "conformance/contract/case_file.h"
#include "conformance/contract/loss_scale.h"
#include "conformance/contract/norm_history.h"

namespace plumbline::conformance {

struct RealStart {
  std::vector<contract::RealParameterState> state;  // in canonical order
  int64_t num_updates = 0;
  contract::NormHistory norm_history = {};
  std::optional<contract::LossScaler> loss_scaler = {};  // none: the initial one
};

}  // namespace plumbline::conformance
