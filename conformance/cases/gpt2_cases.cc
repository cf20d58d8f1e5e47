// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/gpt2_cases.h"

#include "conformance/cases/defect_layouts.h"
#include "conformance/cases/layouts.h"
#include "conformance/cases/real_problem.h"

namespace plumbline::conformance {
namespace {

using contract::OptimizerKind;
using contract::ParameterGroup;
using contract::Schedule;

struct Sizes {
  int64_t layers, width, heads, positions, hidden, vocab;
};

contract::Gpt2Spec Model(const Sizes& sizes) {
  contract::Gpt2Spec spec;
  spec.layers = sizes.layers;
  spec.width = sizes.width;
  spec.heads = sizes.heads;
  spec.positions = sizes.positions;
  spec.hidden = sizes.hidden;
  spec.vocab = sizes.vocab;
  return spec;
}

// Tied, dropout, a norm limit that every step crosses, warm-up; groups of which two fit the biases of layer 0 (the
// first counts: they do not decay) and one has a rate of its own. The embedding is larger than a layer and smaller than
// two, so that the strict limits of gathers are what a peak of memory comes from.
Problem TiedAdamW() {
  contract::Gpt2Spec model = Model({2, 12, 3, 8, 19, 131});
  model.dropout = 0.1;
  Problem problem = RealProblem("tied-adamw", model, OptimizerKind::kAdamW, 0.01);
  problem.plain.params.weight_decay = 0.1;
  problem.plain.groups = {{"*.bias", std::nullopt, 0.0}, {"layers.0.*", 0.02, 0.3}, {"embed.*", 0.004, 0.02}};
  problem.plain.gradient_clipping = 0.05;
  problem.plain.schedule.kind = Schedule::Kind::kWarmup;
  problem.plain.schedule.warmup_min_lr = 0.001;
  problem.plain.schedule.warmup_max_lr = 0.01;
  problem.plain.schedule.warmup_num_steps = 6;
  problem.plain.schedule.linear = true;
  problem.fp16_dynamic = {16, 5, 2, false, 1};
  return problem;
}

// Nothing between the gradient and the weights but the rate: a constant factor shows. Heads of one element: matrices
// with one row or column. A vocabulary of more than two vectors of sixteen, and a part of one.
Problem UntiedSgd() {
  contract::Gpt2Spec model = Model({2, 25, 25, 7, 23, 67});
  model.tied_head = false;
  model.unused = true;
  Problem problem = RealProblem("untied-sgd", model, OptimizerKind::kSgd, 0.3);
  problem.fp16_loss_scale = 2048;
  return problem;
}

// Frozen parameters of both kinds, one of which has one element more than memory is aligned to; momentum, and decay
// that reaches the unused one; a norm limit that the first steps cross and later ones do not, so that decay meets
// clipping and a factor above 1 shows; a warm-up of one step, where its logarithm is 0, then a line that ends before
// the steps do. Momentum and the norms' epsilon are not the usual ones.
Problem FrozenMomentum() {
  contract::Gpt2Spec model = Model({1, 28, 2, 9, 33, 19});
  model.unused = true;
  model.frozen = {"pos.weight", "layers.0.attn.out.weight", "layers.0.norm2.bias", "layers.0.mlp.up.bias"};
  model.norm_epsilon = 1e-3;
  Problem problem = RealProblem("frozen-momentum", model, OptimizerKind::kSgd, 0.2);
  problem.plain.params.momentum = 0.8;
  problem.plain.params.weight_decay = 0.01;
  problem.plain.gradient_clipping = 0.8;
  problem.plain.groups = {{"layers.*.weight", 0.1, std::nullopt}};
  problem.plain.schedule.kind = Schedule::Kind::kWarmupDecay;
  problem.plain.schedule.warmup_min_lr = 0.05;
  problem.plain.schedule.warmup_max_lr = 0.2;
  problem.plain.schedule.warmup_num_steps = 1;
  problem.plain.schedule.total_num_steps = 15;
  problem.fp16_dynamic = {10, 7, 1, false, 256};
  return problem;
}

// Frozen tied embedding, dropout, no clipping, and the logarithmic warm-up, then a cosine that ends before the steps
// do, in groups with rates of their own. Weights five times as large as GPT-2's, so that inputs of the activation reach
// where its approximations differ, and scores where a softmax is not nearly flat. An epsilon that is not the default.
// An unused parameter, which decays though its gradient is zero. A frozen weight of a norm whose bias is trained.
// Vectors of 32 elements leave no padding between neighbours.
Problem FrozenAdamW() {
  contract::Gpt2Spec model = Model({2, 32, 2, 6, 21, 37});
  model.dropout = 0.2;
  model.unused = true;
  model.frozen = {"embed.weight", "layers.1.norm2.weight", "layers.1.mlp.up.bias"};
  model.initializer_range = 0.1;
  Problem problem = RealProblem("frozen-adamw", model, OptimizerKind::kAdamW, 0.005);
  problem.plain.params.weight_decay = 0.05;
  problem.plain.params.beta1 = 0.8;
  problem.plain.params.beta2 = 0.95;
  problem.plain.params.eps = 1e-6;
  problem.plain.groups = {{"*.qkv.*", 0.008, std::nullopt}};
  problem.plain.schedule.kind = Schedule::Kind::kWarmupCosine;
  problem.plain.schedule.warmup_num_steps = 4;
  problem.plain.schedule.total_num_steps = 16;
  problem.plain.schedule.warmup_min_ratio = 0.1;
  problem.plain.schedule.cos_min_ratio = 0.2;
  problem.fp16_dynamic = {16, 6, 3, true, 1};
  return problem;
}

// A cycle that moves rates and betas, those of a group with betas of its own too, in halves of unequal lengths with
// unequal numbers of stairs; then the rate stays, since no number of steps is given in which it would decay. Neither
// beta of the cycle is the optimizer's.
Problem CycledAdamW() {
  contract::Gpt2Spec model = Model({1, 16, 2, 6, 17, 19});
  model.tied_head = false;
  Problem problem = RealProblem("cycled-adamw", model, OptimizerKind::kAdamW, 0.01);
  problem.plain.params.weight_decay = 0.02;
  problem.plain.groups = {{"*norm*", 0.02, 0.0}, {"*.mlp.*", std::nullopt, std::nullopt, contract::BetaPair{0.5, 0.8}}};
  problem.plain.schedule.kind = Schedule::Kind::kOneCycle;
  contract::Cycle& cycle = problem.plain.schedule.cycle;
  cycle.min_lr = 0.002;
  cycle.max_lr = 0.012;
  cycle.first_steps = 5;
  cycle.second_steps = 7;
  cycle.first_stairs = 3;
  cycle.second_stairs = 4;
  cycle.decay_steps = 0;
  cycle.decay_lr_rate = 0.5;
  cycle.min_momentum = 0.6;
  cycle.max_momentum = 0.75;
  problem.fp16_dynamic = {16, 5, 2, false, 512};
  return problem;
}

// Decay in the gradient, groups with betas of their own, and one that is exempt from a norm limit which all steps
// cross. A cycle that leaves the betas as they are, up without stairs and down in stairs; then the rate decays.
Problem CoupledAdam() {
  Problem problem = RealProblem("coupled-adam", Model({1, 12, 2, 6, 15, 23}), OptimizerKind::kAdam, 0.01);
  problem.plain.params.weight_decay = 0.3;
  problem.plain.params.beta1 = 0.7;
  problem.plain.params.beta2 = 0.9;
  problem.plain.params.eps = 1e-4;
  problem.plain.groups = {{"*.mlp.*", std::nullopt, std::nullopt, contract::BetaPair{0.5, 0.8}, true},
                          {"*norm*", 0.02, 0.0, std::nullopt, false}};
  problem.plain.gradient_clipping = 0.1;
  problem.plain.schedule.kind = Schedule::Kind::kOneCycle;
  contract::Cycle& cycle = problem.plain.schedule.cycle;
  cycle.min_lr = 0.004;
  cycle.max_lr = 0.014;
  cycle.first_steps = 6;
  cycle.second_steps = 4;
  cycle.second_stairs = 3;
  cycle.decay_steps = 5;
  cycle.decay_lr_rate = 0.5;
  cycle.moves_momentum = false;
  problem.is_about_updates = true;
  problem.fp16_loss_scale = 4096;
  return problem;
}

// Some rows and columns are clipped and some are not, and the floor of weights counts for most matrices and for no
// norm; the head, as is usual, is exempt. Frozen parameters between others, and an unused one, whose gradient is zero
// and which decays. Rows of twelve elements: ranks' slices, which begin at multiples of 32, begin within rows.
Problem UnitNesterov() {
  contract::Gpt2Spec model = Model({1, 12, 2, 6, 18, 21});
  model.tied_head = false;
  model.unused = true;
  model.frozen = {"pos.weight", "layers.0.attn.out.weight", "layers.0.norm2.bias"};
  Problem problem = RealProblem("unit-nesterov", model, OptimizerKind::kSgd, 0.1);
  problem.plain.params.momentum = 0.8;
  problem.plain.params.nesterov = true;
  problem.plain.params.weight_decay = 0.02;
  problem.plain.groups = {{"head.*", std::nullopt, std::nullopt, std::nullopt, false}};
  problem.plain.adaptive_clipping.kind = contract::AdaptiveClipping::Kind::kUnit;
  problem.plain.adaptive_clipping.ratio = 0.1;
  problem.plain.adaptive_clipping.eps = 0.1;
  problem.is_about_updates = true;
  problem.fp16_dynamic = {12, 8, 2, true, 4};
  return problem;
}

// Every step is a sign times the rate, whatever clipping does, but for what the moment remembers of it. A warm-up of
// the history, then a threshold near the mean, which some norms cross.
Problem HistoryLion() {
  contract::Gpt2Spec model = Model({1, 14, 2, 6, 17, 19});
  model.unused = true;
  Problem problem = RealProblem("history-lion", model, OptimizerKind::kLion, 0.002);
  problem.plain.params.beta1 = 0.85;
  problem.plain.params.beta2 = 0.95;
  problem.plain.params.weight_decay = 0.1;
  problem.plain.adaptive_clipping.kind = contract::AdaptiveClipping::Kind::kHistory;
  problem.plain.adaptive_clipping.deviations = 0.5;
  problem.plain.adaptive_clipping.decay = 0.7;
  problem.plain.adaptive_clipping.warmup_steps = 3;
  problem.is_about_updates = true;
  problem.fp16_dynamic = {32, 5, 2, false, 1};
  return problem;
}

// Ratios of norms at both of their limits and between them, after a norm limit that most steps cross. Frozen parameters
// between others. An embedding of more elements than a block of sums has.
Problem TiedLamb() {
  contract::Gpt2Spec model = Model({1, 16, 2, 6, 20, 67});
  model.frozen = {"pos.weight", "layers.0.norm2.bias", "layers.0.mlp.up.weight"};
  Problem problem = RealProblem("tied-lamb", model, OptimizerKind::kLamb, 0.05);
  problem.plain.params.weight_decay = 0.1;
  problem.plain.params.beta1 = 0.8;
  problem.plain.params.beta2 = 0.95;
  problem.plain.params.min_coeff = 0.03;
  problem.plain.params.max_coeff = 0.8;
  problem.plain.groups = {{"*.bias", 0.03, 0.0}};
  problem.plain.gradient_clipping = 1.1;
  problem.is_about_updates = true;
  problem.fp16_loss_scale = 1024;
  return problem;
}

}  // namespace

CaseList Gpt2Cases(Tier tier) {
  std::vector<Problem> problems = {TiedAdamW(),   UntiedSgd(),    FrozenMomentum(), FrozenAdamW(), CycledAdamW(),
                                   CoupledAdam(), UnitNesterov(), HistoryLion(),    TiedLamb()};
  std::vector<LayoutScale> scales;
  for (const Problem& problem : problems) {
    scales.push_back(ScaleOf(problem, "mlp.up.weight", "attn.out.weight"));
    scales.back().has_bf16 = TriesIn(tier, problem, "bf16");
    scales.back().has_fp16 = TriesIn(tier, problem, "fp16");
  }
  return CoverLayouts(std::move(problems), scales, SizesOf(tier).gpt2_strength, DefectLayouts("gpt2"),
                      SizesOf(tier).gpt2_layouts);
}

}  // namespace plumbline::conformance
