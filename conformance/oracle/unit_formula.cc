// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/unit_formula.h"

#include <cstdint>

namespace plumbline::conformance {
namespace {

constexpr size_t kEmbed = 0;
constexpr size_t kPosition = 1;
constexpr size_t kFirstOfLayers = 2;

std::vector<size_t> Range(size_t begin, size_t count) {
  std::vector<size_t> indices;
  for (size_t i = 0; i < count; ++i) indices.push_back(begin + i);
  return indices;
}

// The embedding, the layers, the head; forward in this order, backward down to the first layer: backward of the
// embedding reads no weight.
ModelUnits DecoderUnits(int64_t layers, size_t parameters_of_a_layer, std::vector<size_t> head) {
  ModelUnits units;
  units.reads.push_back({kEmbed, kPosition});
  for (size_t layer = 0; layer < static_cast<size_t>(layers); ++layer) {
    units.reads.push_back(Range(kFirstOfLayers + layer * parameters_of_a_layer, parameters_of_a_layer));
  }
  units.reads.push_back(std::move(head));
  for (size_t unit = 0; unit < units.reads.size(); ++unit) units.uses.push_back(unit);
  for (size_t unit = units.reads.size(); unit-- > 1;) units.uses.push_back(unit);
  return units;
}

// The head reads the last norm and its own or the embedding's matrix. What takes part in nothing is a unit without use.
ModelUnits OfGpt2(const contract::Gpt2Spec& model) {
  constexpr size_t kParametersOfALayer = 12;
  const size_t norm = kFirstOfLayers + kParametersOfALayer * static_cast<size_t>(model.layers);
  const size_t end_of_norm = norm + 2;
  ModelUnits units =
      DecoderUnits(model.layers, kParametersOfALayer, {norm, norm + 1, model.tied_head ? kEmbed : end_of_norm});
  if (model.unused) units.reads.push_back({model.tied_head ? end_of_norm : end_of_norm + 1});
  return units;
}

ModelUnits OfExact(const contract::ExactSpec& model) {
  constexpr size_t kParametersOfALayer = 6;
  return DecoderUnits(model.layers, kParametersOfALayer, {kEmbed});
}

}  // namespace

ModelUnits UnitsOf(const contract::ModelSpec& model) {
  return model.is_exact() ? OfExact(model.exact()) : OfGpt2(model.gpt2());
}

}  // namespace plumbline::conformance
