// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/chosen_layout.h"

#include <algorithm>

#include "conformance/contract/error.h"

namespace plumbline::conformance {

CaseSpec ChosenLayout(const CaseList& list, const std::function<bool(const CaseSpec&, const Problem&)>& fits) {
  const auto found = std::find_if(list.cases.begin(), list.cases.end(), [&](const CaseSpec& spec) {
    const Problem& problem = list.problems[static_cast<size_t>(spec.problem)];
    return problem.unrelated_states == 0 && fits(spec, problem);
  });
  contract::Check(found != list.cases.end(), "a layout that is to be tried in another way is one of the cases");
  return *found;
}

CaseSpec Marked(std::string_view mark, CaseSpec spec) {
  spec.id.insert(spec.id.rfind('/') + 1, mark);
  return spec;
}

}  // namespace plumbline::conformance
