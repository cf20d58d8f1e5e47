// SPDX-License-Identifier: Apache-2.0
// One matrix for each parameter of family llama, by its name in docs/semantics.md: a weight or its gradient. Vectors
// are matrices of one row. Knows names and order only.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "conformance/contract/model_spec.h"
#include "reference/ops/matrix.h"

namespace plumbline::reference::llama {

struct LayerTensors {
  Matrix norm1, q, k, v, out, norm2, gate, up, down;
};

struct ModelTensors {
  Matrix embed;  // E
  std::vector<LayerTensors> layers;
  Matrix norm;
  Matrix head;
  std::optional<Matrix> unused;  // only with `unused`
};

// Empty matrices for the parameters that this model has.
ModelTensors TensorsFor(const contract::LlamaSpec& spec);

// Pointers in canonical order: position i is the parameter with tensor id i. Valid while `tensors` stays where it is.
std::vector<Matrix*> InCanonicalOrder(ModelTensors& tensors);

}  // namespace plumbline::reference::llama
