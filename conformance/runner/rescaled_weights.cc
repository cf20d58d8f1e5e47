// SPDX-License-Identifier: Apache-2.0
// Names as in docs/semantics.md. The residual stream x is times 2^kResidual; norms take that away again (their epsilon
// is times 4^kResidual) and give what their weight and bias are scaled by, which the product after them takes away.
#include "conformance/runner/rescaled_weights.h"

#include <cmath>
#include <cstdlib>
#include <string>

#include "conformance/contract/error.h"

namespace plumbline::conformance {
namespace {

constexpr int kResidual = 2;
constexpr int kHead = -1;   // of an untied head; a tied one is the embedding, scaled like the residual stream
constexpr int kUnused = 1;  // no value depends on it
constexpr int kQuery = 1;   // scores are q k: the key has the opposite
constexpr int kValue = -2;  // taken away by attn.out
int AttentionNorm(int64_t layer) { return layer % 2 == 0 ? 1 : -3; }
int MlpNorm(int64_t layer) { return layer % 2 == 0 ? -2 : 1; }

constexpr int kUp = 3;  // of llama's gated activation, which is linear in its second factor; taken away by mlp.down

// "norm1.weight" of a parameter of a layer.
struct NameInLayer {
  int64_t layer = 0;
  std::string name;
};

NameInLayer Parsed(const std::string& parameter) {
  const std::string prefix = "layers.";
  const size_t dot = parameter.find('.', prefix.size());
  return {std::stoll(parameter.substr(prefix.size(), dot - prefix.size())), parameter.substr(dot + 1)};
}

std::vector<int> QkvParts(int64_t width, int of_input) {
  std::vector<int> columns;
  for (int part : {kQuery, -kQuery, kValue}) columns.insert(columns.end(), static_cast<size_t>(width), part - of_input);
  return columns;
}

std::vector<int> OfGpt2Layer(const contract::ParameterSpec& parameter) {
  const auto [layer, name] = Parsed(parameter.name);
  const auto all = [&](int exponent) { return std::vector<int>(static_cast<size_t>(parameter.cols), exponent); };
  if (name.starts_with("norm1.")) return all(AttentionNorm(layer));
  if (name == "attn.qkv.weight") return QkvParts(parameter.rows, AttentionNorm(layer));
  if (name == "attn.qkv.bias") return QkvParts(parameter.cols / 3, 0);
  if (name == "attn.out.weight") return all(kResidual - kValue);
  if (name == "attn.out.bias") return all(kResidual);
  if (name.starts_with("norm2.")) return all(MlpNorm(layer));
  if (name == "mlp.up.weight") return all(-MlpNorm(layer));
  if (name == "mlp.up.bias") return all(0);  // the activation is not linear: its input keeps its bits
  contract::Check(name.starts_with("mlp.down."), "every parameter of a layer has an exponent");
  return all(kResidual);
}

// Turning pairs of channels is linear, and so is the sum over the query heads of a key.
std::vector<int> OfLlamaLayer(const contract::ParameterSpec& parameter) {
  const auto [layer, name] = Parsed(parameter.name);
  const auto all = [&](int exponent) { return std::vector<int>(static_cast<size_t>(parameter.cols), exponent); };
  if (name == "norm1.weight") return all(AttentionNorm(layer));
  if (name == "attn.q.weight") return all(kQuery - AttentionNorm(layer));
  if (name == "attn.k.weight") return all(-kQuery - AttentionNorm(layer));
  if (name == "attn.v.weight") return all(kValue - AttentionNorm(layer));
  if (name == "attn.out.weight") return all(kResidual - kValue);
  if (name == "norm2.weight") return all(MlpNorm(layer));
  if (name == "mlp.gate.weight") return all(-MlpNorm(layer));  // not linear: its input keeps its bits
  if (name == "mlp.up.weight") return all(kUp - MlpNorm(layer));
  contract::Check(name == "mlp.down.weight", "every parameter of a layer has an exponent");
  return all(kResidual - kUp);
}

}  // namespace

Exponents RescalingOf(const contract::ModelSpec& model) {
  Exponents exponents;
  const int head = model.has_tied_head() ? kResidual : kHead;
  for (const contract::ParameterSpec& parameter : contract::Parameters(model)) {
    const auto all = [&](int exponent) { return std::vector<int>(static_cast<size_t>(parameter.cols), exponent); };
    if (parameter.name.starts_with("layers.")) {
      const bool is_gpt2 = model.kind() == contract::Family::kGpt2;
      exponents.push_back(is_gpt2 ? OfGpt2Layer(parameter) : OfLlamaLayer(parameter));
    } else if (parameter.name.starts_with("norm.")) {
      exponents.push_back(all(-head));
    } else if (parameter.name == "head.weight") {
      exponents.push_back(all(head));
    } else if (parameter.name == "unused.weight") {
      exponents.push_back(all(kUnused));
    } else {
      contract::Check(parameter.name == "embed.weight" || parameter.name == "pos.weight",
                      "every parameter has an exponent");
      exponents.push_back(all(kResidual));
    }
  }
  return exponents;
}

contract::ModelSpec RescaledModel(contract::ModelSpec model) {
  model.real().norm_epsilon = std::ldexp(model.real().norm_epsilon, 2 * kResidual);
  return model;
}

void Rescale(const Exponents& exponents, std::vector<contract::RealParameterState>& state) {
  contract::Check(exponents.size() == state.size(), "every parameter has an exponent");
  for (size_t tensor = 0; tensor < state.size(); ++tensor) {
    const std::vector<int>& columns = exponents[tensor];
    std::vector<float>& values = state[tensor].master;
    for (size_t i = 0; i < values.size(); ++i) values[i] = std::ldexp(values[i], columns[i % columns.size()]);
  }
}

}  // namespace plumbline::conformance
