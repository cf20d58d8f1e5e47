// SPDX-License-Identifier: Apache-2.0
// What the layers of all real families share: their sizes, and the parameters of a model. Shape suffixes of tensors: m
// samples, t positions, d width, f hidden, v vocabulary, i query heads, h head width; one letter per dim (x_mtd). Rows
// are tokens.
#pragma once

#include <cstdint>
#include <vector>

#include "conformance/contract/error.h"
#include "conformance/contract/model_spec.h"
#include "optimized/model/model.h"
#include "optimized/model/parameter.h"

namespace plumbline::optimized {

// Layers keep a reference to the model's sizes and ask them at each use. Memory is taken when the model is built, for
// all positions; where samples may be shorter, a micro-batch has fewer, and uses the first part of each buffer.
struct RealSizes {
  RealSizes(const contract::RealSpec& model, uint64_t run_seed, int64_t micro_batch_samples)
      : spec(model), seed(run_seed), samples(micro_batch_samples), positions(model.positions) {}

  contract::RealSpec spec;
  uint64_t seed;
  int64_t samples;    // of a micro-batch
  int64_t positions;  // that are computed of each of its samples; at most those of the spec

  int64_t tokens() const { return samples * positions; }
  int64_t stream_elems() const { return tokens() * spec.width; }
  int64_t hidden_elems() const { return tokens() * spec.hidden; }
  int64_t logits_elems() const { return tokens() * spec.vocab; }
  int64_t scores_elems() const { return tokens() * spec.heads * positions; }
};

// In canonical order. Internal unless the frozen parameters, and no others, have no memory for a gradient.
template <typename T>
std::vector<Parameter<T>> MakeParameters(const contract::ModelSpec& spec, const ParameterMemory& memory) {
  std::vector<Parameter<T>> parameters;
  for (const contract::ParameterSpec& p : contract::Parameters(spec)) {
    float* const gradient = memory.gradients.at(p.tensor_id);
    contract::Check((gradient == nullptr) == p.frozen, "frozen parameters, and no others, have no gradient");
    parameters.push_back({p.tensor_id, &memory.weights.at(p.tensor_id), p.numel(), gradient});
  }
  return parameters;
}

}  // namespace plumbline::optimized
