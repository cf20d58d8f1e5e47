// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/case_hands.h"

#include <algorithm>

namespace plumbline::conformance {

size_t NumHands(size_t worth, int jobs) {
  constexpr size_t kStartsPerJob = 2;
  return std::clamp<size_t>(worth, 1, kStartsPerJob * static_cast<size_t>(std::max(jobs, 1)));
}

CaseHands DealCases(const std::vector<PlannedCase>& cases, const std::vector<bool>& starts, int jobs) {
  constexpr size_t kMinCasesPerStart = 4;
  CaseHands hands;
  hands.candidate.resize(NumHands(cases.size() / kMinCasesPerStart, jobs));
  size_t dealt = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    if (!starts[i]) continue;
    (cases[i].role == Role::kWitness     ? hands.witness
     : cases[i].role == Role::kCleanTwin ? hands.twins
     : cases[i].role == Role::kProcesses ? hands.processes
                                         : hands.candidate[dealt++ % hands.candidate.size()])
        .push_back(i);
  }
  return hands;
}

}  // namespace plumbline::conformance
