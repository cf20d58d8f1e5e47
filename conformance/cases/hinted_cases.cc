// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/hinted_cases.h"

#include <string_view>
#include <utility>

#include "conformance/cases/chosen_layout.h"

namespace plumbline::conformance {
namespace {

struct Wanted {
  std::string_view family;
  int64_t zero_stage;
};

constexpr Wanted kWanted[] = {{"exact", 2}, {"gpt2", 3}, {"llama", 1}};

// None has the value that an engine of DeepSpeed's kind would take without it, and sizes are small ones.
contract::Hints EveryHint() {
  return {{"bf16.immediate_grad_update", "false"},
          {"dump_state", "true"},
          {"graph_harvesting", "true"},
          {"log_level", "\"error\""},
          {"memory_breakdown", "true"},
          {"steps_per_print", "1"},
          {"wall_clock_breakdown", "true"},
          {"zero_optimization.allgather_bucket_size", "7"},
          {"zero_optimization.enable_sanity_checks", "true"},
          {"zero_optimization.grad_hooks", "false"},
          {"zero_optimization.log_trace_cache_warnings", "true"},
          {"zero_optimization.memory_efficient_linear", "false"},
          {"zero_optimization.override_module_apply", "false"},
          {"zero_optimization.round_robin_gradients", "true"},
          {"zero_optimization.stage3_max_reuse_distance", "1"},
          {"zero_optimization.stage3_module_granularity_threshold", "5"},
          {"zero_optimization.stage3_partition_stream_chunk_size", "3"},
          {"zero_optimization.sub_group_size", "11"},
          {"zero_optimization.use_multi_rank_bucket_allreduce", "false"}};
}

}  // namespace

std::vector<CaseSpec> HintedCases(const CaseList& list, Tier tier) {
  std::vector<CaseSpec> cases;
  if (tier == Tier::kSmoke) return cases;
  for (const Wanted& wanted : kWanted) {
    CaseSpec spec = ChosenLayout(list, [&](const CaseSpec& layout, const Problem& problem) {
      return problem.model.family() == wanted.family && layout.config.zero_stage == wanted.zero_stage &&
             layout.config.data_degree > 1;
    });
    spec.config.hints = EveryHint();
    cases.push_back(Marked("hinted-", std::move(spec)));
  }
  return cases;
}

}  // namespace plumbline::conformance
