// SPDX-License-Identifier: Apache-2.0
// What the record says of a run and of each of its cases, apart from what is found out about failures.
#pragma once

#include <cstdint>
#include <string>

#include "conformance/runner/judge.h"
#include "conformance/runner/plan.h"
#include "conformance/runner/verify_engines.h"
#include "conformance/runner/verify_options.h"
#include "reports/record/record.h"

namespace plumbline::conformance {

// Without cases and defects. `listed`: the number of cases that there will be.
reports::Record NewRecord(const VerifyOptions& options, const VerifyEngines& engines, int64_t listed);

// `engine`: its name in its own words; the clean twin's is marked as such.
reports::CaseRecord RecordOf(const PlannedCase& entry, Judgement judgement, const std::string& engine, double seconds,
                             const VerifyOptions& options);

}  // namespace plumbline::conformance
