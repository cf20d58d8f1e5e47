// SPDX-License-Identifier: Apache-2.0
// One matrix for each parameter of family gpt2, by its name in docs/semantics.md: a weight or its gradient. Vectors are
// matrices of one row. Knows names and order only.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "conformance/contract/model_spec.h"
#include "reference/ops/matrix.h"

namespace plumbline::reference::gpt2 {

// Of a linear map or a norm.
struct WeightAndBias {
  Matrix weight, bias;
};

struct LayerTensors {
  WeightAndBias norm1, qkv, out, norm2, up, down;
};

struct ModelTensors {
  Matrix embed, pos;  // E, P
  std::vector<LayerTensors> layers;
  WeightAndBias norm;
  std::optional<Matrix> head;    // not with a tied head, which is E
  std::optional<Matrix> unused;  // only with `unused`
};

// Empty matrices for the parameters that this model has.
ModelTensors TensorsFor(const contract::Gpt2Spec& spec);

// Pointers in canonical order: position i is the parameter with tensor id i. Valid while `tensors` stays where it is.
std::vector<Matrix*> InCanonicalOrder(ModelTensors& tensors);

}  // namespace plumbline::reference::gpt2
