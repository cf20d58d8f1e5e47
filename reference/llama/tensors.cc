// SPDX-License-Identifier: Apache-2.0
// Implements tensors.h.
#include "reference/llama/tensors.h"

namespace plumbline::reference::llama {

ModelTensors TensorsFor(const contract::LlamaSpec& spec) {
  ModelTensors tensors;
  tensors.layers.resize(static_cast<size_t>(spec.layers));
  if (spec.unused) tensors.unused.emplace();
  return tensors;
}

std::vector<Matrix*> InCanonicalOrder(ModelTensors& tensors) {
  std::vector<Matrix*> order = {&tensors.embed};
  for (LayerTensors& layer : tensors.layers)
    for (Matrix* matrix :
         {&layer.norm1, &layer.q, &layer.k, &layer.v, &layer.out, &layer.norm2, &layer.gate, &layer.up, &layer.down})
      order.push_back(matrix);
  order.push_back(&tensors.norm);
  order.push_back(&tensors.head);
  if (tensors.unused) order.push_back(&*tensors.unused);
  return order;
}

}  // namespace plumbline::reference::llama
