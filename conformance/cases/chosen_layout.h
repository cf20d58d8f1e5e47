// SPDX-License-Identifier: Apache-2.0
// Layouts of a tier's list that are tried once more in another way: what process_cases.h, layer_stage_cases.h and
// hinted_cases.h have in common. Pure.
#pragma once

#include <functional>
#include <string_view>

#include "conformance/cases/problem.h"

namespace plumbline::conformance {

// A copy of the first case of the list that fits, of a problem that is trained over several steps. Internal where there
// is none: what is wanted is of the list.
CaseSpec ChosenLayout(const CaseList& list, const std::function<bool(const CaseSpec&, const Problem&)>& fits);

// The case with `mark` in its id before the layout.
CaseSpec Marked(std::string_view mark, CaseSpec spec);

}  // namespace plumbline::conformance
