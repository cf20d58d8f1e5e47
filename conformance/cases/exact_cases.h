// SPDX-License-Identifier: Apache-2.0
// The exact cases of `verify`: what is trained, in every layout (layouts.h) at strength three.
#pragma once

#include "conformance/cases/problem.h"

namespace plumbline::conformance {

// Every problem fits bf16 unless its bounds say otherwise; see the list's `excluded`.
CaseList ExactCases();

}  // namespace plumbline::conformance
