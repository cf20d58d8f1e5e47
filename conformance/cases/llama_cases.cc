// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/llama_cases.h"

#include <string>
#include <vector>

#include "conformance/cases/defect_layouts.h"
#include "conformance/cases/layouts.h"
#include "conformance/cases/real_problem.h"

namespace plumbline::conformance {
namespace {

using contract::LlamaSpec;
using contract::OptimizerKind;
using contract::Schedule;

struct Sizes {
  int64_t layers, width, heads, kv_heads, positions, hidden, vocab;
};

LlamaSpec Model(const Sizes& sizes) {
  LlamaSpec spec;
  spec.layers = sizes.layers;
  spec.width = sizes.width;
  spec.heads = sizes.heads;
  spec.kv_heads = sizes.kv_heads;
  spec.positions = sizes.positions;
  spec.hidden = sizes.hidden;
  spec.vocab = sizes.vocab;
  // Scores and the inputs of the activation then reach where a softmax is not flat and a sigmoid no line.
  spec.initializer_range = 0.1;
  return spec;
}

// Three query heads to a key, dropout, samples of unequal lengths. Both pairs of a head's channels turn far within a
// sample. A cosine with fewer steps in all than its warm-up: after it the rate is the lowest at once, in step 11, which
// is one of those that begin at a state of the truth.
Problem GroupedAdamW() {
  LlamaSpec model = Model({2, 24, 6, 2, 8, 29, 61});
  model.dropout = 0.1;
  model.unequal_lengths = true;
  model.rope_theta = 50;
  Problem problem = RealProblem("grouped-adamw", model, OptimizerKind::kAdamW, 0.005);
  problem.plain.params.weight_decay = 0.1;
  problem.plain.groups = {{"*norm*", 0.01, 0.0}, {"*.attn.*", std::nullopt, 0.02}};
  problem.plain.gradient_clipping = 0.1;
  problem.plain.schedule.kind = Schedule::Kind::kWarmupCosine;
  problem.plain.schedule.warmup_num_steps = 10;
  problem.plain.schedule.total_num_steps = 6;
  problem.plain.schedule.linear = true;
  problem.plain.schedule.cos_min_ratio = 0.6;
  problem.fp16_dynamic = {16, 5, 2, false, 1};
  return problem;
}

// One key for all heads, whole samples, the usual angles and epsilon, and nothing between the gradient and the weights
// but the rate. Three pairs of channels to a head: an odd number. A frozen head.
Problem SharedSgd() {
  LlamaSpec model = Model({1, 30, 5, 1, 9, 37, 43});
  model.unused = true;
  model.frozen = {"head.weight"};
  Problem problem = RealProblem("shared-sgd", model, OptimizerKind::kSgd, 0.3);
  problem.fp16_dynamic = {16, 6, 2, true, 1};
  return problem;
}

// A key for each head, frozen parameters of all kinds, samples of unequal lengths without dropout (so that samples may
// change places), an epsilon that counts. A cycle of the rate, up in stairs and down without; it says what betas would
// be, and momentum stays.
Problem FrozenNesterov() {
  LlamaSpec model = Model({2, 16, 2, 2, 8, 19, 23});
  model.unequal_lengths = true;
  model.norm_epsilon = 1e-2;
  model.frozen = {"embed.weight",
                  "layers.0.attn.k.weight",
                  "layers.0.mlp.gate.weight",
                  "layers.1.norm2.weight",
                  "layers.1.attn.v.weight",
                  "layers.1.mlp.up.weight"};
  Problem problem = RealProblem("frozen-nesterov", model, OptimizerKind::kSgd, 0.2);
  problem.plain.params.momentum = 0.8;
  problem.plain.params.nesterov = true;
  problem.plain.params.weight_decay = 0.01;
  problem.plain.schedule.kind = Schedule::Kind::kOneCycle;
  contract::Cycle& cycle = problem.plain.schedule.cycle;
  cycle.min_lr = 0.1;
  cycle.max_lr = 0.4;
  cycle.first_steps = 6;
  cycle.second_steps = 4;
  cycle.first_stairs = 3;
  cycle.second_stairs = 0;
  cycle.decay_steps = 5;
  cycle.decay_lr_rate = 0.5;
  cycle.min_momentum = 0.5;
  cycle.max_momentum = 0.7;
  problem.fp16_loss_scale = 2048;
  return problem;
}

}  // namespace

CaseList LlamaCases(Tier tier) {
  std::vector<Problem> problems = {GroupedAdamW(), SharedSgd(), FrozenNesterov()};
  std::vector<LayoutScale> scales;
  for (const Problem& problem : problems) {
    scales.push_back(ScaleOf(problem, "mlp.down.weight", "attn.out.weight"));
    scales.back().has_bf16 = TriesIn(tier, problem, "bf16");
    scales.back().has_fp16 = TriesIn(tier, problem, "fp16");
  }
  return CoverLayouts(std::move(problems), scales, SizesOf(tier).llama_strength, DefectLayouts("llama"));
}

}  // namespace plumbline::conformance
