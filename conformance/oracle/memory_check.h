// SPDX-License-Identifier: Apache-2.0
// Memory that ranks report, against the formula of memory_formula.h: exactly, in every step, rank and category.
// It measures nothing itself: an engine's books are judged, not what its processes took from the system.
#pragma once

#include <span>

#include "conformance/contract/case_file.h"
#include "conformance/contract/trace.h"
#include "reports/record/record.h"

namespace plumbline::conformance {

// "memory". Without peaks in any step: a failure where the engine says that it keeps books (`required`), else not
// applicable; vacuous if there is no step. Peaks that an engine reports unasked are judged too.
reports::CheckRecord CheckMemory(const contract::Case& spec, std::span<const contract::Trace> ranks, bool required);

}  // namespace plumbline::conformance
