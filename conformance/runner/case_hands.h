// SPDX-License-Identifier: Apache-2.0
// Which start of an engine runs which case. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "conformance/runner/plan.h"

namespace plumbline::conformance {

// Starts among which an engine's work is dealt: as many as it is worth, so few that all jobs have work to the end and a
// start, which costs about as much as four small cases, is rare.
size_t NumHands(size_t worth, int jobs);

// Numbers of cases, each list in the order in which its start runs them.
struct CaseHands {
  std::vector<std::vector<size_t>> candidate;  // a start each; some may be empty
  std::vector<size_t> witness;
  std::vector<size_t> twins;
  std::vector<size_t> processes;
};

// Deals those that are started: the candidate's to a few starts, so that all jobs have work to the end and a crash
// costs little; the witness's, the clean twin's and those of
// processes to one start each. `starts`: by case.
CaseHands DealCases(const std::vector<PlannedCase>& cases, const std::vector<bool>& starts, int jobs);

}  // namespace plumbline::conformance
