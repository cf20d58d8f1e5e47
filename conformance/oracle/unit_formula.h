// SPDX-License-Identifier: Apache-2.0
// The units of each family under ZeRO 3: which parameters they read, and the order in which one micro-batch uses them.
// Derived from the words of docs/zero3.md ("Groups") and from nothing of any engine.
#pragma once

#include <cstddef>
#include <vector>

#include "conformance/contract/model_spec.h"

namespace plumbline::conformance {

struct ModelUnits {
  std::vector<std::vector<size_t>> reads;  // of each unit: canonical indices of parameters
  std::vector<size_t> uses;                // units in the order of one micro-batch, forward and backward
};

ModelUnits UnitsOf(const contract::ModelSpec& model);

}  // namespace plumbline::conformance
