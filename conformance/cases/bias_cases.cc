// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/bias_cases.h"

namespace plumbline::conformance {
namespace {

// With 6144 tokens and 32 steps every tensor of 4096 elements sees 2^-10 in both engines of ours, with room for one
// that errs more (docs/results/bias-power.md).
constexpr int64_t kBatch = 192;
constexpr int64_t kUnrelatedStates = 32;

}  // namespace

Problem BiasProblem() {
  contract::Gpt2Spec model;
  model.layers = 1;
  model.width = 64;
  model.heads = 4;
  model.positions = 32;
  model.hidden = 256;
  model.vocab = 67;
  // Twice GPT-2's: with smaller weights all labels' probabilities are nearly one number, whose rounding is then shared
  // by all tokens of a step.
  model.initializer_range = 0.04;
  Problem problem{"bias", model, {}, 1};
  problem.unrelated_states = kUnrelatedStates;
  problem.plain.train_batch_size = problem.plain.micro_batch_size = kBatch;
  problem.plain.optimizer = contract::OptimizerKind::kSgd;
  problem.plain.params.lr = 0.1;
  return problem;
}

CaseList BiasCases(Tier tier) {
  CaseList list;
  list.problems.push_back(BiasProblem());
  if (tier == Tier::kSmoke) return list;
  const auto add = [&](const std::string& layout, int64_t data, int64_t zero, int64_t accumulation) {
    CaseSpec spec{"gpt2/bias/" + layout, 0, list.problems.front().plain, {}};
    spec.config.storage = contract::DType::kBF16;
    spec.config.data_degree = data;
    spec.config.zero_stage = zero;
    spec.config.accumulation_steps = accumulation;
    spec.config.micro_batch_size = kBatch / data / accumulation;
    spec.axes = {{"problem", "bias"},
                 {"data", std::to_string(data)},
                 {"zero", std::to_string(zero)},
                 {"accumulation", std::to_string(accumulation)},
                 {"storage", "bf16"}};
    list.cases.push_back(std::move(spec));
  };
  add("data3-zero2-acc2-bf16", 3, 2, 2);
  return list;
}

}  // namespace plumbline::conformance
