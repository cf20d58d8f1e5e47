// SPDX-License-Identifier: Apache-2.0
// The exact cases of `verify`: what is trained, in a covering array of layouts (layouts.h).
#pragma once

#include "conformance/cases/problem.h"
#include "conformance/cases/tier.h"

namespace plumbline::conformance {

// Every problem fits bf16 unless its bounds say otherwise; see `excluded` of the list's coverage.
CaseList ExactCases(Tier tier = Tier::kSmoke);

}  // namespace plumbline::conformance
