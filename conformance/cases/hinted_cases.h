// SPDX-License-Identifier: Apache-2.0
// Cases whose config has every hint (docs/config.md): keys that say how and not what, so that no result may depend on
// them. Pure.
#pragma once

#include <vector>

#include "conformance/cases/problem.h"
#include "conformance/cases/tier.h"

namespace plumbline::conformance {

// One layout of each family, of stages 1, 2 and 3. None in tier smoke. The ids have "hinted-" before the layout.
std::vector<CaseSpec> HintedCases(const CaseList& list, Tier tier);

}  // namespace plumbline::conformance
