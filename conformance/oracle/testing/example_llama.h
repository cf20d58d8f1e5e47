// SPDX-License-Identifier: Apache-2.0
// A small model of family llama, made up for tests of the formulas: one layer, width 12, three heads that share one key,
// 5 positions, hidden 7, vocabulary 11.
#pragma once

#include "conformance/contract/model_spec.h"

namespace plumbline::conformance {

inline contract::LlamaSpec ExampleLlama() {
  contract::LlamaSpec model;
  model.layers = 1;
  model.width = 12;
  model.heads = 3;
  model.kv_heads = 1;
  model.positions = 5;
  model.hidden = 7;
  model.vocab = 11;
  return model;
}

}  // namespace plumbline::conformance
