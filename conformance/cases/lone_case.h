// SPDX-License-Identifier: Apache-2.0
// A case that stands by itself, outside of the lists: which problem it belongs to, and whether it can be judged at all.
// Pure: no files. What an engine may be given is the contract's business; this is what the harness needs on top.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "conformance/cases/problem.h"
#include "conformance/contract/case_file.h"

namespace plumbline::conformance {

// The second plain engine of a real family sums the batch in so many micro-batches.
inline constexpr int64_t kOtherPlainMicroBatches = 4;

// All ranks run on this machine. Of an engine that is started once for each, the harness holds three descriptors a rank
// (its process and its two outputs), and 1024 is what a process usually may have.
inline constexpr int64_t kMaxRanks = 256;

// What is trained, without how it is distributed and stored. `name` is the problem's.
Problem ProblemOf(const contract::Case& spec, const std::string& name);

// Why the case cannot be judged as a whole trajectory, or nothing: one line that names the field, its value and what is
// allowed. The case is one that contract::ParseCase accepts.
std::optional<std::string> WhyNotJudgeable(const contract::Case& spec);

}  // namespace plumbline::conformance
