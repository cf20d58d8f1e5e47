// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/layer_stage_cases.h"

#include <string>
#include <string_view>
#include <utility>

#include "conformance/cases/chosen_layout.h"

namespace plumbline::conformance {
namespace {

// A layout of a problem, and the stages of even and odd layers. Optimizers and clipping differ in what they sum over
// ranks: a layer that every rank has whole counts once.
struct Wanted {
  std::string_view problem;
  int64_t others;  // the stage of what is in no layer: the layout's
  int64_t even;
  int64_t odd;
};

constexpr Wanted kWanted[] = {{"grouped-v5", 1, 3, 0},    {"dense-v19", 0, 2, 1},       {"wide-v5", 2, 0, 3},
                              {"dense-v19", 3, 1, 2},     {"middle-v19", 0, 1, 3},      {"frozen-adamw", 3, 0, 2},
                              {"unit-nesterov", 0, 1, 3}, {"tied-lamb", 1, 0, 3},       {"history-lion", 0, 2, 1},
                              {"grouped-adamw", 2, 1, 0}, {"frozen-nesterov", 3, 0, 1}, {"shared-sgd", 0, 3, 2}};

// In family exact, where order of sums shows nothing, with several micro-batches: which of them reduce differs.
bool Fits(const Wanted& wanted, const CaseSpec& spec, const Problem& problem) {
  const contract::RunConfig& config = spec.config;
  return problem.name == wanted.problem && config.data_degree > 1 && config.zero_stage == wanted.others &&
         (config.accumulation_steps > 1 || !problem.model.is_exact());
}

}  // namespace

std::vector<CaseSpec> LayerStageCases(const CaseList& list, Tier tier) {
  std::vector<CaseSpec> cases;
  if (tier == Tier::kSmoke) return cases;
  for (const Wanted& wanted : kWanted) {
    CaseSpec spec = ChosenLayout(
        list, [&](const CaseSpec& layout, const Problem& problem) { return Fits(wanted, layout, problem); });
    const int64_t layers = list.problems[static_cast<size_t>(spec.problem)].model.layers();
    std::string mark = "layers";
    for (int64_t layer = 0; layer < layers; ++layer) {
      spec.config.layer_stages.push_back(layer % 2 == 0 ? wanted.even : wanted.odd);
      mark += std::to_string(spec.config.layer_stages.back());
    }
    cases.push_back(Marked(mark + "-", std::move(spec)));
  }
  return cases;
}

}  // namespace plumbline::conformance
