// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/unit_formula.h"

#include <cstdint>

namespace plumbline::conformance {
namespace {

constexpr size_t kEmbed = 0;
constexpr size_t kPosition = 1;

std::vector<size_t> Range(size_t begin, size_t count) {
  std::vector<size_t> indices;
  for (size_t i = 0; i < count; ++i) indices.push_back(begin + i);
  return indices;
}

// The embedding, the layers, the head; forward in this order, backward down to the first layer: backward of the
// embedding reads no weight. Layers follow the embedding in canonical order.
ModelUnits DecoderUnits(std::vector<size_t> embedding, int64_t layers, size_t parameters_of_a_layer,
                        std::vector<size_t> head) {
  ModelUnits units;
  const size_t first = embedding.size();
  units.reads.push_back(std::move(embedding));
  for (size_t layer = 0; layer < static_cast<size_t>(layers); ++layer) {
    units.reads.push_back(Range(first + layer * parameters_of_a_layer, parameters_of_a_layer));
  }
  units.reads.push_back(std::move(head));
  for (size_t unit = 0; unit < units.reads.size(); ++unit) units.uses.push_back(unit);
  for (size_t unit = units.reads.size(); unit-- > 1;) units.uses.push_back(unit);
  return units;
}

// The head reads the last norm and its own or the embedding's matrix. What takes part in nothing is a unit without use.
ModelUnits OfGpt2(const contract::Gpt2Spec& model) {
  constexpr size_t kParametersOfALayer = 12;
  const size_t norm = 2 + kParametersOfALayer * static_cast<size_t>(model.layers);
  const size_t end_of_norm = norm + 2;
  ModelUnits units = DecoderUnits({kEmbed, kPosition}, model.layers, kParametersOfALayer,
                                  {norm, norm + 1, model.tied_head ? kEmbed : end_of_norm});
  if (model.unused) units.reads.push_back({model.tied_head ? end_of_norm : end_of_norm + 1});
  return units;
}

// The head reads the last norm and the matrix after it.
ModelUnits OfLlama(const contract::LlamaSpec& model) {
  constexpr size_t kParametersOfALayer = 9;
  const size_t norm = 1 + kParametersOfALayer * static_cast<size_t>(model.layers);
  ModelUnits units = DecoderUnits({kEmbed}, model.layers, kParametersOfALayer, {norm, norm + 1});
  if (model.unused) units.reads.push_back({norm + 2});
  return units;
}

ModelUnits OfExact(const contract::ExactSpec& model) {
  constexpr size_t kParametersOfALayer = 6;
  return DecoderUnits({kEmbed, kPosition}, model.layers, kParametersOfALayer, {kEmbed});
}

}  // namespace

ModelUnits UnitsOf(const contract::ModelSpec& model) {
  switch (model.kind()) {
    case contract::Family::kExact:
      return OfExact(model.exact());
    case contract::Family::kGpt2:
      return OfGpt2(model.gpt2());
    case contract::Family::kLlama:
      return OfLlama(model.llama());
  }
  return {};
}

}  // namespace plumbline::conformance
