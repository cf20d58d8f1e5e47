// SPDX-License-Identifier: Apache-2.0
// Cases of family gpt2 that exist for one question: is some gradient in bf16 wrong by a constant factor near one? Many
// single steps, each from weights and batches of its own, with so many tokens that rounding averages out. Nothing is
// trained over several steps here; that is what the other cases of the family are for.
#pragma once

#include "conformance/cases/problem.h"
#include "conformance/cases/tier.h"

namespace plumbline::conformance {

// The problem. Its matrices and its embedding have 4096 elements and more.
Problem BiasProblem();

// In the smoke tier the problem alone: a defect may be tried on it in every tier.
CaseList BiasCases(Tier tier);

}  // namespace plumbline::conformance
