// SPDX-License-Identifier: Apache-2.0
// Cases for the engine's tests, made from a text that is part of the test by the contract's batch source.
#pragma once

#include <string_view>

#include "conformance/contract/batch_source.h"
#include "conformance/contract/case_file.h"
#include "conformance/contract/model_spec.h"

namespace plumbline::reference {

inline constexpr std::string_view kText =
    "The quick brown fox jumps over the lazy dog; pack my box with five dozen liquor jugs. Sphinx of black quartz, "
    "judge my "
    "vow! How vexingly quick daft zebras jump, 0123456789 times; jackdaws love my big sphinx of quartz, and 42 wizards "
    "boxed.";

// Layers, width, heads, kv_heads, positions, hidden, vocab, w, c, g, dropout.
inline constexpr contract::ExactSpec kDense{2, 12, 3, 3, 8, 20, 19, 1, 2, 4, false};
inline constexpr contract::ExactSpec kGroupedDropout{2, 20, 4, 2, 7, 28, 5, 1, 2, 4, true};

inline contract::CaseData MakeCase(const contract::ExactSpec& model, contract::OptimizerKind optimizer, int64_t batch,
                                   int64_t steps, uint64_t seed = 1) {
  contract::CaseData data;
  data.spec.id = "reference-test";
  data.spec.model = model;
  data.spec.config.train_batch_size = batch;
  data.spec.config.micro_batch_size = batch;
  data.spec.config.optimizer = optimizer;
  data.spec.seed = seed;
  data.spec.steps = steps;
  data.parameters = contract::Parameters(model);
  contract::TokenSource text;
  text.reduce_modulo_vocab = true;
  for (const char c : kText) text.tokens.push_back(static_cast<unsigned char>(c));
  data.batches = contract::MakeBatches(text, model, {seed, 0, steps, batch});
  data.state = contract::MakeInitialState(model, optimizer, seed);
  return data;
}

}  // namespace plumbline::reference
