// SPDX-License-Identifier: Apache-2.0
// Cases in which layers have ZeRO stages of their own: layouts of a tier's list, whose stage is that of what is in no
// layer, with stages given to their layers. Pure.
#pragma once

#include <vector>

#include "conformance/cases/problem.h"
#include "conformance/cases/tier.h"

namespace plumbline::conformance {

// Every two of the four stages meet, in two layers or in a layer and what is in none, in family exact and in the real
// families together; each stage is that of a layer in either. None in tier smoke. The ids have "layers<stages>-" before
// the layout, as in "layers30-data2-zero1-acc3-bucket_at-fp32".
std::vector<CaseSpec> LayerStageCases(const CaseList& list, Tier tier);

}  // namespace plumbline::conformance
