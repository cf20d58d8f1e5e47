// SPDX-License-Identifier: Apache-2.0
// Names as in docs/semantics.md.
#include "conformance/runner/shifted_weights.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "conformance/contract/error.h"

namespace plumbline::conformance {
namespace {

using contract::ModelSpec;
using State = std::vector<contract::RealParameterState>;

// Beyond the range of the exponential in fp32, whose logarithm is -104 to 88.73, wherever a logit was before.
constexpr double kShift = 128;
// Standard deviation of a token's logits. An engine that subtracts the second largest in the place of the largest is
// beyond the range too, in half of all tokens.
constexpr double kSpread = 512;
// What is a multiple of it and below 2^13 has 24 bits. No normal number of a 32-bit draw is above nine deviations.
constexpr double kGrid = 0x1p-11;
constexpr float kQueryBias = 8;

const double kLargestExponent = 128 * std::log(2.0);

size_t IndexOf(const ModelSpec& model, const std::string& name) {
  const std::vector<contract::ParameterSpec> parameters = contract::Parameters(model);
  const auto found = std::find_if(parameters.begin(), parameters.end(),
                                  [&](const contract::ParameterSpec& parameter) { return parameter.name == name; });
  contract::Check(found != parameters.end(), "the model has the parameter that is shifted");
  return static_cast<size_t>(found - parameters.begin());
}

const std::vector<float>& Values(const ModelSpec& model, const State& state, const std::string& name) {
  return state[IndexOf(model, name)].master;
}

float OnGrid(double value) { return static_cast<float>(std::round(value / kGrid) * kGrid); }

// The sum of the magnitudes of the terms of a norm's output times a vector: what is normalised has a square sum of at
// most its width (Cauchy and Schwarz). Norms of llama have no bias.
class NormOutput {
 public:
  NormOutput(const ModelSpec& model, const State& state, const std::string& norm)
      : weight_(Values(model, state, norm + ".weight")),
        bias_(model.kind() == contract::Family::kGpt2 ? &Values(model, state, norm + ".bias") : nullptr) {}

  // `factor_of`: the vector's element of an input column.
  template <typename FactorOf>
  double LargestTimes(const FactorOf& factor_of) const {
    double squares = 0, of_bias = 0;
    for (size_t i = 0; i < weight_.size(); ++i) {
      const double factor = factor_of(i);
      squares += std::pow(double{weight_[i]} * factor, 2);
      if (bias_ != nullptr) of_bias += std::abs(double{(*bias_)[i]} * factor);
    }
    return std::sqrt(static_cast<double>(weight_.size()) * squares) + of_bias;
  }

 private:
  const std::vector<float>& weight_;
  const std::vector<float>* bias_;
};

double LargestLogit(const ModelSpec& model, const State& state) {
  const NormOutput hidden(model, state, "norm");
  const std::vector<float>& head = Values(model, state, "head.weight");
  const auto width = static_cast<size_t>(model.real().width);
  double largest = 0;
  for (size_t begin = 0; begin < head.size(); begin += width) {
    largest = std::max(largest, hidden.LargestTimes([&](size_t i) { return double{head[begin + i]}; }));
  }
  return largest;
}

double LargestScoreOfLayer(const ModelSpec& model, const State& state, const std::string& layer) {
  const NormOutput input(model, state, layer + "norm1");
  const std::vector<float>& weight = Values(model, state, layer + "attn.qkv.weight");
  const std::vector<float>& bias = Values(model, state, layer + "attn.qkv.bias");
  const auto width = static_cast<size_t>(model.real().width),
             head_width = static_cast<size_t>(model.real().head_width());
  const auto largest_of = [&](size_t column) {
    return input.LargestTimes([&](size_t row) { return double{weight[row * 3 * width + column]}; }) +
           std::abs(double{bias[column]});
  };
  double largest = 0;
  for (size_t begin = 0; begin < width; begin += head_width) {
    double score = 0;
    for (size_t i = begin; i < begin + head_width; ++i) score += largest_of(i) * largest_of(width + i);
    largest = std::max(largest, score / std::sqrt(static_cast<double>(head_width)));
  }
  return largest;
}

std::string Layer(int64_t layer) { return "layers." + std::to_string(layer) + "."; }

}  // namespace

ShiftedStarts ShiftedLogits(const ModelSpec& model, State initial) {
  const size_t index = IndexOf(model, "head.weight");
  const double root_width = std::sqrt(static_cast<double>(model.real().width));
  std::vector<float>& head = initial[index].master;
  for (float& value : head) value = OnGrid(double{value} * kSpread / (model.real().initializer_range * root_width));
  ShiftedStarts starts{initial, std::move(initial), {}};
  std::vector<float>& shifted = starts.shifted[index].master;
  // A vector with both signs is not hidden by the norm, whose output has a mean near zero.
  const float step = OnGrid(kShift / root_width);
  for (size_t i = 0; i < shifted.size(); ++i) {
    shifted[i] += i % static_cast<size_t>(model.real().width) % 2 == 0 ? step : -step;
  }
  starts.shift.largest = std::max(LargestLogit(model, starts.whole), LargestLogit(model, starts.shifted));
  // A token's loss is at most its largest logit minus that of the label, and log(vocabulary).
  starts.shift.least_loss = kLargestExponent + std::log(static_cast<double>(model.real().vocab));
  return starts;
}

ShiftedStarts ShiftedScores(const ModelSpec& model, State initial) {
  const auto width = static_cast<size_t>(model.real().width),
             head_width = static_cast<size_t>(model.real().head_width());
  ShiftedStarts starts{std::move(initial), {}, {}};
  for (int64_t layer = 0; layer < model.real().layers; ++layer) {
    std::vector<float>& bias = starts.whole[IndexOf(model, Layer(layer) + "attn.qkv.bias")].master;
    for (size_t i = 0; i < width; ++i) bias[i] += i / head_width % 2 == 0 ? kQueryBias : -kQueryBias;
  }
  starts.shifted = starts.whole;
  // head_width products, divided by its root; twice the shift, since a query is not its bias alone. Keys of all
  // positions get what the rounded sum gives: one vector.
  const auto step = static_cast<float>(2 * kShift / (double{kQueryBias} * std::sqrt(static_cast<double>(head_width))));
  for (int64_t layer = 0; layer < model.real().layers; ++layer) {
    std::vector<float>& bias = starts.shifted[IndexOf(model, Layer(layer) + "attn.qkv.bias")].master;
    for (size_t i = width; i < 2 * width; ++i) bias[i] += step;
    starts.shift.largest = std::max(starts.shift.largest, LargestScoreOfLayer(model, starts.shifted, Layer(layer)));
  }
  return starts;
}

}  // namespace plumbline::conformance
