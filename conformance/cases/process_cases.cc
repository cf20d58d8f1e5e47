// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/process_cases.h"

#include <string_view>

#include "conformance/cases/chosen_layout.h"

namespace plumbline::conformance {
namespace {

using contract::DType;

struct Wanted {
  std::string_view family;
  int64_t ranks;
  int64_t zero_stage;
  DType storage;
  bool has_dynamic_scale = false;
};

// What differs between transports is kinds of calls, which follow from the stage, the number of ranks, and the type of
// what is summed and gathered. With a dynamic scale an overflow that one rank alone sees must reach all.
constexpr Wanted kWanted[] = {
    {"exact", 2, 0, DType::kF32},      {"exact", 2, 1, DType::kF32}, {"exact", 2, 2, DType::kF16},
    {"exact", 2, 3, DType::kF32},      {"exact", 4, 0, DType::kF32}, {"exact", 4, 1, DType::kBF16},
    {"exact", 4, 2, DType::kF16},      {"exact", 4, 3, DType::kF16}, {"gpt2", 2, 1, DType::kBF16},
    {"gpt2", 2, 3, DType::kF32},       {"gpt2", 2, 3, DType::kF16},  {"gpt2", 4, 1, DType::kF16, true},
    {"gpt2", 4, 3, DType::kF16, true}, {"llama", 2, 1, DType::kF32}, {"llama", 4, 2, DType::kF16, true},
    {"llama", 4, 3, DType::kF32},      {"llama", 4, 3, DType::kBF16}};

}  // namespace

std::vector<CaseSpec> ProcessCases(const CaseList& list, Tier tier) {
  std::vector<CaseSpec> cases;
  if (tier == Tier::kSmoke) return cases;
  for (const Wanted& wanted : kWanted) {
    const CaseSpec spec = ChosenLayout(list, [&](const CaseSpec& layout, const Problem& problem) {
      return problem.model.family() == wanted.family && layout.config.data_degree == wanted.ranks &&
             layout.config.zero_stage == wanted.zero_stage && layout.config.storage == wanted.storage &&
             contract::HasDynamicLossScale(layout.config) == wanted.has_dynamic_scale;
    });
    cases.push_back(Marked("processes-", spec));
  }
  return cases;
}

}  // namespace plumbline::conformance
