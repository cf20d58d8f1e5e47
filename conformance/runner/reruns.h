// SPDX-License-Identifier: Apache-2.0
// Cases that failed are run once more, alone: that shows that the printed line reproduces the failure, or marks the
// case as flaky. It stays failed. What is said of it is made here; running is the caller's.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "conformance/runner/judge.h"
#include "reports/record/record.h"

namespace plumbline::conformance {

// So many failed cases at most are run again, and diagnosed: a broken engine is not to double the time.
inline constexpr size_t kMaxReruns = 5;

bool Failed(reports::Verdict verdict);  // FAIL or ERROR

// The first of them, by number.
std::vector<size_t> FailedCases(const reports::Record& record, size_t most = kMaxReruns);

// Added to the message of a case that is judged again: " (the same when run again)". Empty where the second run gave no
// verdict.
std::string RemarkOnRerun(const std::string& message, const Judgement& second);

}  // namespace plumbline::conformance
