// SPDX-License-Identifier: Apache-2.0
// Writes small case folders below a folder, from which corpora of fuzz targets were made: each has what another family,
// type or feature adds to case.json, weights, state and batches, and all are small enough for many executions a second.
//
//   write_cases FOLDER        FOLDER/exact, FOLDER/gpt2_history, ...
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>

#include "conformance/contract/batch_source.h"
#include "conformance/contract/case_file.h"

namespace plumbline::contract {
namespace {

template <typename Spec>
Spec Sizes() {
  Spec spec;
  spec.layers = 1;
  spec.width = 2;
  spec.heads = 1;
  spec.positions = 6;
  spec.hidden = 3;
  spec.vocab = 5;
  return spec;
}

Case CaseOf(const ModelSpec& model, const std::string& name, OptimizerKind optimizer) {
  Case spec;
  spec.model = model;
  spec.id = std::string(model.family()) + "/" + name;
  spec.config.train_batch_size = spec.config.micro_batch_size = 4;
  spec.config.optimizer = optimizer;
  spec.steps = 2;
  spec.seed = 5;
  return spec;
}

Case Exact() {
  ExactSpec model = Sizes<ExactSpec>();
  model.kv_heads = 1;
  Case spec = CaseOf(model, "small", OptimizerKind::kModularMomentum);
  spec.config.storage = DType::kBF16;
  return spec;
}

Case TwoRanks() {
  Case spec = Exact();
  spec.id = "exact/two";
  spec.config.micro_batch_size = 1;
  spec.config.accumulation_steps = 2;
  spec.config.data_degree = 2;
  spec.config.zero_stage = 3;
  spec.config.reduce_bucket_elems = 7;
  spec.config.persistence_threshold_elems = 4;
  return spec;
}

Case Gpt2History() {
  Gpt2Spec model = Sizes<Gpt2Spec>();
  model.frozen = {"layers.0.norm1.bias"};
  Case spec = CaseOf(model, "history", OptimizerKind::kAdamW);
  spec.config.adaptive_clipping.kind = AdaptiveClipping::Kind::kHistory;
  spec.config.groups = {{.match = "*.bias", .lr = 0.01, .weight_decay = 0.0}};
  return spec;
}

Case LlamaScaler() {
  LlamaSpec model = Sizes<LlamaSpec>();
  model.kv_heads = 1;
  model.unequal_lengths = true;
  Case spec = CaseOf(model, "scaler", OptimizerKind::kSgd);
  spec.config.storage = DType::kF16;
  spec.config.loss_scale = 0;
  spec.config.dynamic_loss_scale.initial_scale_power = 4;
  spec.config.params.momentum = 0.9;
  return spec;
}

void Write(const std::filesystem::path& folder, const Case& spec) {
  CaseData data;
  data.spec = spec;
  data.parameters = Parameters(spec.model);
  if (spec.model.is_exact()) {
    data.state = MakeInitialState(spec.model.exact(), spec.config.optimizer, spec.seed);
  } else {
    data.real_state = MakeInitialRealState(spec.model, spec.config, spec.seed);
  }
  if (HasDynamicLossScale(spec.config)) data.loss_scaler = InitialLossScaler(spec.config.dynamic_loss_scale);
  const TokenSource source{{0, 1, 2, 3, 4, 3, 1, 0, 2, 2, 4, 1}};
  data.batches = MakeBatches(source, spec.model, {spec.seed, 0, spec.steps, spec.config.train_batch_size});
  std::filesystem::create_directories(folder);
  WriteCase(folder, data);
}

void WriteAll(const std::filesystem::path& folder) {
  for (const Case& spec : {Exact(), TwoRanks(), Gpt2History(), LlamaScaler()}) {
    std::string name = spec.id;
    name[name.find('/')] = '_';
    Write(folder / name, spec);
    Case dumped = spec;
    dumped.dump_steps = {0};
    if (spec.steps > 1) dumped.save_steps = {0};
    Write(folder / (name + "_dumped"), dumped);
  }
}

}  // namespace
}  // namespace plumbline::contract

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: write_cases FOLDER\n"), 2;
  plumbline::contract::WriteAll(argv[1]);
  return 0;
}
