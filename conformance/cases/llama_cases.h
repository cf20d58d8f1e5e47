// SPDX-License-Identifier: Apache-2.0
// The cases of family llama: what it has and gpt2 has not (norms without a mean, turned pairs of channels, heads that
// share keys and values, a gated activation, samples of unequal lengths), in a covering array of layouts (layouts.h).
// Optimizers, schedules and clipping are the business of gpt2's problems, which share them.
#pragma once

#include "conformance/cases/problem.h"
#include "conformance/cases/tier.h"

namespace plumbline::conformance {

CaseList LlamaCases(Tier tier = Tier::kSmoke);

}  // namespace plumbline::conformance
