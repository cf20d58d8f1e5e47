// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/case_hands.h"

#include <algorithm>

namespace plumbline::conformance {

CaseHands DealCases(const std::vector<PlannedCase>& cases, const std::vector<bool>& starts, int jobs) {
  constexpr size_t kStartsPerJob = 2;
  constexpr size_t kMinCasesPerStart = 4;  // a start costs about as much as four small cases
  const size_t most = kStartsPerJob * static_cast<size_t>(std::max(jobs, 1));
  CaseHands hands;
  hands.candidate.resize(std::clamp<size_t>(cases.size() / kMinCasesPerStart, 1, most));
  size_t dealt = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    if (!starts[i]) continue;
    (cases[i].role == Role::kWitness     ? hands.witness
     : cases[i].role == Role::kCleanTwin ? hands.twins
                                         : hands.candidate[dealt++ % hands.candidate.size()])
        .push_back(i);
  }
  return hands;
}

}  // namespace plumbline::conformance
