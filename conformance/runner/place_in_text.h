// SPDX-License-Identifier: Apache-2.0
// Step, rank and tensor that a finding's own text names, for findings that are no values of a tensor: counts of calls,
// peaks of memory, slices that do not cover. By the convention of the checks' texts ("step 0, rank 1: ...").
#pragma once

#include <string>

#include "conformance/contract/model_spec.h"
#include "reports/record/record.h"

namespace plumbline::conformance {

// What the text does not name stays unknown. Of several parameters the longest name counts.
reports::DivergenceRecord PlaceInText(const std::string& text, const contract::ModelSpec& model);

}  // namespace plumbline::conformance
