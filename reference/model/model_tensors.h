// SPDX-License-Identifier: Apache-2.0
// One value for each parameter of the exact family, by its letter in docs/exact-family.md: a weight, its gradient, its
// master. Knows names and order only.
#pragma once

#include <cstdint>
#include <vector>

namespace plumbline::reference {

template <class T>
struct LayerTensors {
  T q, k, v, o;  // Wq, Wk, Wv, Wo
  T up, down;    // Wu, Wd
};

template <class T>
struct ModelTensors {
  T embed, pos;  // E, P
  std::vector<LayerTensors<T>> layers;
};

// Pointers in canonical order: position i is the parameter with tensor id i. Valid while `tensors` stays where it is.
template <class T>
std::vector<T*> InCanonicalOrder(ModelTensors<T>& tensors) {
  std::vector<T*> order = {&tensors.embed, &tensors.pos};
  for (LayerTensors<T>& layer : tensors.layers)
    for (T* tensor : {&layer.q, &layer.k, &layer.v, &layer.o, &layer.up, &layer.down}) order.push_back(tensor);
  return order;
}

template <class T>
std::vector<const T*> InCanonicalOrder(const ModelTensors<T>& tensors) {
  std::vector<const T*> order = {&tensors.embed, &tensors.pos};
  for (const LayerTensors<T>& layer : tensors.layers)
    for (const T* tensor : {&layer.q, &layer.k, &layer.v, &layer.o, &layer.up, &layer.down}) order.push_back(tensor);
  return order;
}

}  // namespace plumbline::reference
