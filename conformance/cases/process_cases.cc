// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/process_cases.h"

#include <string_view>

#include "conformance/cases/chosen_layout.h"

namespace plumbline::conformance {
namespace {

struct Wanted {
  std::string_view family;
  int64_t ranks;
  int64_t zero_stage;
};

// What differs between transports is kinds of calls, which follow from the stage, and the number of ranks.
constexpr Wanted kWanted[] = {{"exact", 2, 0}, {"exact", 2, 1}, {"exact", 2, 2}, {"exact", 2, 3},
                              {"exact", 4, 0}, {"exact", 4, 1}, {"exact", 4, 2}, {"exact", 4, 3},
                              {"gpt2", 2, 3},  {"gpt2", 4, 1},  {"llama", 2, 1}, {"llama", 4, 3}};

}  // namespace

std::vector<CaseSpec> ProcessCases(const CaseList& list, Tier tier) {
  std::vector<CaseSpec> cases;
  if (tier == Tier::kSmoke) return cases;
  for (const Wanted& wanted : kWanted) {
    const CaseSpec spec = ChosenLayout(list, [&](const CaseSpec& layout, const Problem& problem) {
      return problem.model.family() == wanted.family && layout.config.data_degree == wanted.ranks &&
             layout.config.zero_stage == wanted.zero_stage;
    });
    cases.push_back(Marked("processes-", spec));
  }
  return cases;
}

}  // namespace plumbline::conformance
