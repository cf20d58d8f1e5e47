// SPDX-License-Identifier: Apache-2.0
// Cases of family gpt2 that are odd where the covering arrays are regular: more layers, ranks, micro-batches and steps,
// odd sizes everywhere, one parameter that is trained alone, more tokens than bf16 counts. Each setting here is one
// that a mistake needed which no other case saw (docs/results/breadth.md).
#pragma once

#include "conformance/cases/problem.h"
#include "conformance/cases/tier.h"

namespace plumbline::conformance {

// None in tier smoke.
CaseList OddCases(Tier tier);

}  // namespace plumbline::conformance
