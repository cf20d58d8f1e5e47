// SPDX-License-Identifier: Apache-2.0
// Cases that our engine also runs with ranks that are processes: layouts of a tier's list, of two and of four ranks, so
// that every one of them is also run with threads. Pure.
#pragma once

#include <vector>

#include "conformance/cases/problem.h"
#include "conformance/cases/tier.h"

namespace plumbline::conformance {

// Of family exact each stage with two and with four ranks, of the real families each storage type, and fp16 with a
// dynamic scale. None in tier smoke: a start costs as much as ten cases. The ids have "processes-" before the layout.
std::vector<CaseSpec> ProcessCases(const CaseList& list, Tier tier);

}  // namespace plumbline::conformance
