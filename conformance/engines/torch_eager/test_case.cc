// SPDX-License-Identifier: Apache-2.0
// Implementation of test_case.h.
#include "conformance/engines/torch_eager/test_case.h"

#include <iterator>

#include "conformance/contract/batch_source.h"

namespace plumbline::conformance::torch_eager {
namespace {

constexpr char kText[] =
    "Weights that learn by whole numbers cannot round, and what cannot round cannot hide: one unit too many in a "
    "gradient, "
    "a moment or a counter, and some steps later most of the model is another model. So this text is read byte by "
    "byte.";

}  // namespace

contract::ExactSpec Dense() {
  return {.layers = 2, .width = 12, .heads = 3, .kv_heads = 3, .positions = 7, .hidden = 20, .vocab = 19};
}

contract::ExactSpec GroupedWithDropout() {
  contract::ExactSpec spec = {
      .layers = 3, .width = 20, .heads = 4, .kv_heads = 2, .positions = 5, .hidden = 13, .vocab = 23};
  spec.weight_bound = 2;
  spec.fold_bound = 3;
  spec.gradient_fold_bound = 5;
  spec.dropout = true;
  return spec;
}

contract::CaseData MakeTestCase(const contract::ExactSpec& model, contract::OptimizerKind optimizer,
                                contract::DType storage, int64_t steps, int64_t batch) {
  contract::CaseData data;
  data.spec.id = "witness";
  data.spec.model = model;
  data.spec.seed = 0x1234567890ull;
  data.spec.steps = steps;
  data.spec.config.train_batch_size = data.spec.config.micro_batch_size = batch;
  data.spec.config.optimizer = optimizer;
  data.spec.config.storage = storage;
  data.parameters = contract::Parameters(model);
  data.state = contract::MakeInitialState(model, optimizer, data.spec.seed);
  const contract::TokenSource source = {.tokens = {std::begin(kText), std::end(kText) - 1},
                                        .reduce_modulo_vocab = true};
  data.batches = contract::MakeBatches(source, model, {data.spec.seed, 0, steps, batch});
  return data;
}

contract::Gpt2Spec Tiny() {
  return {{.layers = 2, .width = 6, .heads = 3, .positions = 5, .hidden = 7, .vocab = 11, .frozen = {}}};
}

contract::LlamaSpec TinyLlama() {
  return {{.layers = 2, .width = 16, .heads = 4, .positions = 7, .hidden = 7, .vocab = 11, .frozen = {}},
          /*kv_heads=*/2};
}

contract::LlamaSpec UnequalLlama() {
  contract::LlamaSpec spec = {
      {.layers = 2, .width = 18, .heads = 3, .positions = 9, .hidden = 5, .vocab = 11, .frozen = {}},
      /*kv_heads=*/1};
  spec.dropout = 0.3;
  spec.norm_epsilon = 0.01;
  spec.unused = true;
  spec.frozen = {"layers.0.attn.k.weight", "layers.1.norm2.weight"};
  spec.rope_theta = 50;
  spec.unequal_lengths = true;
  return spec;
}

contract::CaseData MakeRealCase(const contract::ModelSpec& model, contract::RunConfig config, int64_t steps,
                                int64_t batch, int64_t accumulation) {
  contract::CaseData data;
  data.spec.id = "witness";
  data.spec.model = model;
  data.spec.seed = 0x1234567890ull;
  data.spec.steps = steps;
  config.train_batch_size = batch;
  config.accumulation_steps = accumulation;
  config.micro_batch_size = batch / accumulation;
  data.spec.config = config;
  data.parameters = contract::Parameters(model);
  data.real_state = contract::MakeInitialRealState(model, config, data.spec.seed);
  if (contract::HasDynamicLossScale(config)) data.loss_scaler = InitialLossScaler(config.dynamic_loss_scale);
  const contract::TokenSource source = {.tokens = {std::begin(kText), std::end(kText) - 1},
                                        .reduce_modulo_vocab = true};
  data.batches = contract::MakeBatches(source, model, {data.spec.seed, 0, steps, batch});
  return data;
}

}  // namespace plumbline::conformance::torch_eager
