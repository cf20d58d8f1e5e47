// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/exact_cases.h"

#include "conformance/cases/defect_layouts.h"
#include "conformance/cases/layouts.h"

namespace plumbline::conformance {
namespace {

using contract::OptimizerKind;

struct Sizes {
  int64_t layers, width, heads, kv_heads, positions, hidden, vocab;
};

contract::ExactSpec Model(const Sizes& sizes) {
  contract::ExactSpec spec;
  spec.layers = sizes.layers;
  spec.width = sizes.width;
  spec.heads = sizes.heads;
  spec.kv_heads = sizes.kv_heads;
  spec.positions = sizes.positions;
  spec.hidden = sizes.hidden;
  spec.vocab = sizes.vocab;
  // Above the guide's 4, so that gradients leave the integers that bf16 holds: an accumulator in bf16 must show.
  spec.gradient_fold_bound = 10;
  return spec;
}

Problem MakeProblem(const std::string& name, const contract::ExactSpec& model, OptimizerKind optimizer, int64_t batch) {
  Problem problem{name, model, {}};
  problem.plain.train_batch_size = batch;
  problem.plain.micro_batch_size = batch;
  problem.plain.optimizer = optimizer;
  // So large that gradients accumulated in fp16 overflow, and all else does not.
  problem.fp16_loss_scale = model.weight_bound == 1 ? 256 : 64;
  return problem;
}

// Sizes are chosen so that few numels divide by 3, 4 or 8, and batches so that every pair of degrees occurs.
std::vector<Problem> Problems() {
  std::vector<Problem> problems;
  problems.push_back(MakeProblem("dense-v19", Model({2, 12, 3, 3, 8, 19, 19}), OptimizerKind::kModularMomentum, 24));
  contract::ExactSpec grouped = Model({2, 20, 4, 2, 7, 27, 5});
  grouped.dropout = true;
  problems.push_back(MakeProblem("grouped-v5", grouped, OptimizerKind::kModularMomentum, 36));
  problems.push_back(MakeProblem("sgd-v19", Model({1, 15, 3, 1, 9, 23, 19}), OptimizerKind::kModularSgd, 32));
  // Beyond what bf16 holds and within fp16: an engine that stores fp16 as bf16 must show.
  contract::ExactSpec middle = Model({1, 13, 1, 1, 7, 22, 19});
  middle.weight_bound = 5;
  middle.fold_bound = 6;
  middle.gradient_fold_bound = 16;
  problems.push_back(MakeProblem("middle-v19", middle, OptimizerKind::kModularMomentum, 24));
  // Far beyond what bf16 and TF32 hold: an engine that rounds the inputs of its fp32 products must show.
  contract::ExactSpec wide = Model({2, 14, 2, 2, 8, 17, 5});
  wide.weight_bound = 2501;
  wide.fold_bound = 301;
  wide.gradient_fold_bound = 61;
  problems.push_back(MakeProblem("wide-v5", wide, OptimizerKind::kModularMomentum, 24));
  return problems;
}

}  // namespace

CaseList ExactCases(Tier tier) {
  std::vector<Problem> problems = Problems();
  for (Problem& problem : problems) problem.steps = SizesOf(tier).exact_steps;
  std::vector<LayoutScale> scales;
  for (const Problem& problem : problems) scales.push_back(ScaleOf(problem, "mlp.up", "attn.q"));
  return CoverLayouts(std::move(problems), scales, SizesOf(tier).exact_strength, DefectLayouts("exact"),
                      SizesOf(tier).exact_layouts);
}

}  // namespace plumbline::conformance
