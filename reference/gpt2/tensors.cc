// SPDX-License-Identifier: Apache-2.0
// Implements tensors.h.
#include "reference/gpt2/tensors.h"

namespace plumbline::reference::gpt2 {

ModelTensors TensorsFor(const contract::Gpt2Spec& spec) {
  ModelTensors tensors;
  tensors.layers.resize(static_cast<size_t>(spec.layers));
  if (!spec.tied_head) tensors.head.emplace();
  if (spec.unused) tensors.unused.emplace();
  return tensors;
}

std::vector<Matrix*> InCanonicalOrder(ModelTensors& tensors) {
  std::vector<Matrix*> order = {&tensors.embed, &tensors.pos};
  const auto add = [&](WeightAndBias& pair) {
    order.push_back(&pair.weight);
    order.push_back(&pair.bias);
  };
  for (LayerTensors& layer : tensors.layers)
    for (WeightAndBias* pair : {&layer.norm1, &layer.qkv, &layer.out, &layer.norm2, &layer.up, &layer.down}) add(*pair);
  add(tensors.norm);
  if (tensors.head) order.push_back(&*tensors.head);
  if (tensors.unused) order.push_back(&*tensors.unused);
  return order;
}

}  // namespace plumbline::reference::gpt2
