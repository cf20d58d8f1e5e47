// SPDX-License-Identifier: Apache-2.0
// The cases of family gpt2: what is trained, in a covering array of layouts (layouts.h). Between them the problems have
// a tied and an untied head, frozen and unused parameters, dropout, two groups with rates and decay of their own, AdamW
// and SGD with and without momentum, clipping that is crossed, not crossed and absent, and every schedule.
#pragma once

#include "conformance/cases/problem.h"
#include "conformance/cases/tier.h"

namespace plumbline::conformance {

// One problem has SGD without momentum, clipping or decay: Adam and clipping hide constant factors.
CaseList Gpt2Cases(Tier tier = Tier::kSmoke);

}  // namespace plumbline::conformance
