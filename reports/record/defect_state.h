// SPDX-License-Identifier: Apache-2.0
// What a report says became of a planted defect. Exit codes and totals do not come from here.
#pragma once

#include "reports/record/record.h"

namespace plumbline::reports {

// A defect that a stopped run never came to has not survived anything.
inline bool WasNotTried(const DefectRecord& defect) { return !defect.caught && defect.verdict == Verdict::kNotRun; }

}  // namespace plumbline::reports
