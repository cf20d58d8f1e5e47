// SPDX-License-Identifier: Apache-2.0
// Cases of the real families for tests: the text and the data come from the contract's batch source, the weights are
// its initial ones, made larger where a test wants every op well away from its linear range.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "conformance/contract/batch_source.h"
#include "conformance/contract/case_file.h"
#include "conformance/contract/model_spec.h"
#include "reference/testing/small_case.h"

namespace plumbline::reference {

// No dropout, tied head. Heads divide the width; positions, hidden width and vocabulary are other primes.
inline contract::Gpt2Spec SmallGpt2() {
  contract::Gpt2Spec spec;
  spec.layers = 2;
  spec.width = 6;
  spec.heads = 3;
  spec.positions = 5;
  spec.hidden = 7;
  spec.vocab = 11;
  return spec;
}

inline contract::RunConfig RealConfig(contract::OptimizerKind optimizer, int64_t batch) {
  contract::RunConfig config;
  config.train_batch_size = batch;
  config.micro_batch_size = batch;
  config.optimizer = optimizer;
  config.params.weight_decay = 0.01;
  config.params.momentum = optimizer == contract::OptimizerKind::kSgd ? 0.9 : 0;
  return config;
}

inline contract::CaseData MakeRealCase(const contract::ModelSpec& model, const contract::RunConfig& config,
                                       int64_t steps, int64_t first_step = 0, uint64_t seed = 1) {
  contract::CaseData data;
  data.spec.id = "reference-test";
  data.spec.model = model;
  data.spec.config = config;
  data.spec.seed = seed;
  data.spec.first_step = first_step;
  data.spec.steps = steps;
  data.parameters = contract::Parameters(model);
  contract::TokenSource text;
  text.reduce_modulo_vocab = true;
  for (const char c : kText) text.tokens.push_back(static_cast<unsigned char>(c));
  data.batches = contract::MakeBatches(text, model, {seed, first_step, steps, config.train_batch_size});
  data.real_state = contract::MakeInitialRealState(model, config, seed);
  return data;
}

// Makes the gradients of `step` not finite: it alone has a token whose embedding is infinite. The head is not tied.
inline void PoisonStep(contract::CaseData& data, int64_t step) {
  constexpr int32_t kPoison = 3;
  for (int32_t& token : data.batches.tokens)
    if (token == kPoison) token = 4;
  data.batches.tokens[static_cast<size_t>(data.batches.Index(step, 1, 0))] = kPoison;
  const auto row = static_cast<size_t>(kPoison * data.spec.model.real().width);
  data.real_state[0].master[row] = std::numeric_limits<float>::infinity();
}

}  // namespace plumbline::reference
