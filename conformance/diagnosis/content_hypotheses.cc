// SPDX-License-Identifier: Apache-2.0
// Predictions that need no knowledge of how a tensor came about: its elements are at other places, or lost, or all
// multiplied. Regions and factors are taken from the candidate, and counted as fitted.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "conformance/diagnosis/displacement.h"
#include "conformance/diagnosis/hypothesis.h"

namespace plumbline::conformance {
namespace {

// The element's value before the step, if it is known.
const Values* Before(const Evidence& evidence) {
  switch (evidence.kind) {
    case contract::TensorKind::kMoment:
      return &evidence.before.moment;
    case contract::TensorKind::kSecondMoment:
      return &evidence.before.second_moment;
    case contract::TensorKind::kMaster:
      return &evidence.before.master;
    default:
      return nullptr;
  }
}

// `truth` with `other` where the candidate equals `other` and not the truth: each run of such elements is one fitted
// number. None where it does so nowhere.
Predictions WithRegionOf(const Evidence& evidence, const Values& other) {
  Prediction prediction{"", evidence.truth};
  bool was_lost = false;
  int64_t num_lost = 0;
  for (size_t i = 0; i < evidence.truth.size(); ++i) {
    if (other[i] == evidence.truth[i]) continue;  // says neither this nor that
    const bool is_lost = evidence.candidate[i] == other[i];
    prediction.num_fitted += is_lost && !was_lost;
    num_lost += is_lost;
    if (is_lost) prediction.values[i] = other[i];
    was_lost = is_lost;
  }
  if (num_lost == 0) return {};
  prediction.what = std::to_string(num_lost) + " elements in " + std::to_string(prediction.num_fitted) + " runs";
  return {prediction};
}

}  // namespace

Predictions ShiftedShard(const Evidence& evidence) {
  Predictions predictions;
  for (const Displacement& displacement : Displacements(evidence)) {
    predictions.push_back({displacement.what, Displaced(evidence.truth, displacement), displacement.num_fitted});
  }
  return predictions;
}

Predictions Transposed(const Evidence& evidence) {
  const auto rows = static_cast<size_t>(evidence.parameter.rows);
  const auto cols = static_cast<size_t>(evidence.parameter.cols);
  if (rows < 2 || cols < 2) return {};
  Prediction prediction{"", Values(evidence.truth.size())};
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < cols; ++c) prediction.values[c * rows + r] = evidence.truth[r * cols + c];
  }
  return {prediction};
}

Predictions ZeroedRegion(const Evidence& evidence) {
  return WithRegionOf(evidence, Values(evidence.truth.size(), 0.0));
}

Predictions StaleRegion(const Evidence& evidence) {
  if (evidence.kind == contract::TensorKind::kWeight && !evidence.before.master.empty()) {
    Values weights = evidence.before.master;
    for (double& value : weights) value = WorkingWeight(evidence.recipe, value);
    return WithRegionOf(evidence, weights);
  }
  const Values* before = Before(evidence);
  return before && before->size() == evidence.truth.size() ? WithRegionOf(evidence, *before) : Predictions{};
}

// What no other prediction can be compared with: a place for it in the table of residuals, with the candidate's own
// numbers, where the truth is finite and the candidate is not.
Predictions NotFinite(const Evidence& evidence) {
  int64_t num_nan = 0;
  int64_t num_infinite = 0;
  for (double value : evidence.candidate) {
    num_nan += std::isnan(value);
    num_infinite += std::isinf(value);
  }
  if (num_nan + num_infinite == 0) return {};
  return {{std::to_string(num_nan) + " NaN, " + std::to_string(num_infinite) + " infinite", evidence.candidate, 0}};
}

Predictions OtherFactor(const Evidence& evidence) {
  double product = 0;
  double squares = 0;
  for (size_t i = 0; i < evidence.truth.size(); ++i) {
    product += evidence.candidate[i] * evidence.truth[i];
    squares += evidence.truth[i] * evidence.truth[i];
  }
  if (!(squares > 0) || !std::isfinite(product)) return {};
  const double factor = product / squares;
  char text[32];
  std::snprintf(text, sizeof(text), "%.6g", factor);
  Prediction prediction{text, evidence.truth, 1};
  for (double& value : prediction.values) value *= factor;
  return {prediction};
}

}  // namespace plumbline::conformance
