// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/odd_cases.h"

#include <string>

#include "conformance/cases/layouts.h"
#include "conformance/cases/real_problem.h"

namespace plumbline::conformance {
namespace {

using contract::OptimizerKind;

contract::Gpt2Spec Model(int64_t layers, int64_t width, int64_t heads, int64_t positions, int64_t hidden,
                         int64_t vocab) {
  contract::Gpt2Spec spec;
  spec.layers = layers;
  spec.width = width;
  spec.heads = heads;
  spec.positions = positions;
  spec.hidden = hidden;
  spec.vocab = vocab;
  return spec;
}

// Four layers, every size odd, so that masks of dropout begin inside blocks of four draws; a cycle that is over after
// 12 of 40 steps, and a rate that decays to the last of them.
Problem LongAdamW() {
  contract::Gpt2Spec model = Model(4, 15, 3, 7, 11, 53);
  model.dropout = 0.1;
  Problem problem = RealProblem("long-adamw", model, OptimizerKind::kAdamW, 0.01);
  problem.steps = 40;
  problem.is_about_updates = true;
  problem.plain.train_batch_size = problem.plain.micro_batch_size = 12;
  problem.plain.params.weight_decay = 0.1;
  problem.plain.schedule.kind = contract::Schedule::Kind::kOneCycle;
  contract::Cycle& cycle = problem.plain.schedule.cycle;
  cycle.min_lr = 0.004;
  cycle.max_lr = 0.012;
  cycle.first_steps = 5;
  cycle.second_steps = 7;
  cycle.decay_steps = 3;
  cycle.decay_lr_rate = 0.2;
  cycle.min_momentum = 0.7;
  cycle.max_momentum = 0.9;
  return problem;
}

// One vector is trained, so that with several ranks all but one own nothing; clipping by the history of norms that are
// small, whose epsilon then counts.
Problem LoneHistory() {
  contract::Gpt2Spec model = Model(1, 10, 2, 5, 9, 13);
  for (const contract::ParameterSpec& parameter : contract::Parameters(model)) {
    if (parameter.name != "norm.weight") model.frozen.push_back(parameter.name);
  }
  Problem problem = RealProblem("lone-history", model, OptimizerKind::kSgd, 0.05);
  problem.is_about_updates = true;
  problem.plain.params.momentum = 0.5;
  problem.plain.adaptive_clipping.kind = contract::AdaptiveClipping::Kind::kHistory;
  problem.plain.adaptive_clipping.deviations = 0.5;
  problem.plain.adaptive_clipping.decay = 0.8;
  problem.plain.adaptive_clipping.warmup_steps = 3;
  return problem;
}

// More tokens on one rank than bf16 counts one by one.
Problem CrowdedSgd() {
  Problem problem = RealProblem("crowded-sgd", Model(1, 12, 2, 8, 14, 29), OptimizerKind::kSgd, 0.1);
  problem.is_about_updates = true;
  problem.steps = 6;
  problem.plain.train_batch_size = problem.plain.micro_batch_size = 96;
  return problem;
}

void Add(CaseList& list, int64_t data, int64_t zero, int64_t accumulation, contract::DType storage) {
  const auto index = static_cast<int>(list.problems.size()) - 1;
  const Problem& problem = list.problems.back();
  CaseSpec spec{"", index, problem.plain, {}};
  StoreIn(storage, problem, spec.config);
  spec.config.data_degree = data;
  spec.config.zero_stage = zero;
  spec.config.persistence_threshold_elems = 0;
  spec.config.accumulation_steps = accumulation;
  spec.config.micro_batch_size = spec.config.train_batch_size / data / accumulation;
  const std::string type(contract::StorageName(storage));
  spec.id = "gpt2/" + problem.name + "/data" + std::to_string(data) + "-zero" + std::to_string(zero) + "-acc" +
            std::to_string(accumulation) + "-" + type;
  spec.axes = {{"problem", problem.name},
               {"data", std::to_string(data)},
               {"zero", std::to_string(zero)},
               {"accumulation", std::to_string(accumulation)},
               {"storage", type}};
  list.cases.push_back(std::move(spec));
}

}  // namespace

CaseList OddCases(Tier tier) {
  using contract::DType;
  CaseList list;
  if (tier == Tier::kSmoke) return list;
  list.problems.push_back(LongAdamW());
  Add(list, 2, 2, 6, DType::kF32);
  Add(list, 4, 1, 1, DType::kF32);
  Add(list, 12, 3, 1, DType::kF32);
  list.problems.push_back(LoneHistory());
  Add(list, 4, 1, 1, DType::kF32);
  Add(list, 4, 3, 3, DType::kF32);
  list.problems.push_back(CrowdedSgd());
  Add(list, 1, 0, 1, DType::kF32);
  Add(list, 1, 0, 1, DType::kBF16);
  return list;
}

}  // namespace plumbline::conformance
