// SPDX-License-Identifier: Apache-2.0
// Implements recorder.h.
#include "reference/certificate/recorder.h"

#include <cmath>

namespace plumbline::reference {
namespace {

double MaxAbs(const Matrix& matrix) {
  double max = 0;
  for (int64_t i = 0; i < matrix.numel(); ++i)
    if (std::abs(matrix[i]) > max) max = std::abs(matrix[i]);
  return max;
}

}  // namespace

std::string ToString(const Place& place) {
  if (place.layer == Place::kNoLayer) return place.name;
  return "layers." + std::to_string(place.layer) + "." + place.name;
}

Recorder::Recorder() {
  for (const char* quantity : {"activation_sum", "gradient_sum", "stored", "fold_input", "gradient", "state"})
    quantities_[quantity] = {};
}

void Recorder::ActivationSum(const Sum& sum, const Place& place) {
  Raise("activation_sum", MaxAbs(sum.magnitude), place);
  Stored(sum.value, place);
}

void Recorder::Stored(const Matrix& value, const Place& place) { Raise("stored", MaxAbs(value), place); }

void Recorder::FoldInput(const Matrix& x, const Fold& fold, const Place& place) {
  if (!fold.is_identity()) Raise("fold_input", MaxAbs(x) + fold.bound(), place);
}

void Recorder::GradientSum(const Sum& gradient, const Place& place) {
  Raise("gradient_sum", MaxAbs(gradient.magnitude), place);
}

void Recorder::Gradient(const Matrix& gradient, const Place& place) { Raise("gradient", MaxAbs(gradient), place); }

void Recorder::State(const Matrix& value, const Place& place) { Raise("state", MaxAbs(value), place); }

void Recorder::Raise(const char* quantity, double value, const Place& place) {
  contract::Certificate::Quantity& largest = quantities_.at(quantity);
  if (value > largest.max) largest = {value, ToString(place) + ", step " + std::to_string(step_)};
}

}  // namespace plumbline::reference
