// SPDX-License-Identifier: Apache-2.0
#include "conformance/diagnosis/first_step.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

namespace plumbline::conformance {
namespace {

using contract::TensorKind;

std::optional<size_t> IndexOf(const contract::ModelSpec& model, const std::string& name) {
  const std::vector<contract::ParameterSpec> parameters = contract::Parameters(model);
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].name == name) return i;
  }
  return std::nullopt;
}

double Distance(const std::vector<double>& a, const std::vector<double>& b) {
  double squares = 0;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) squares += (a[i] - b[i]) * (a[i] - b[i]);
  return std::isfinite(squares) ? std::sqrt(squares) : HUGE_VAL;
}

}  // namespace

int64_t FirstStepOf(const contract::ModelSpec& model, const Yardstick& yardstick, std::span<const StepSight> candidate,
                    const Divergence& divergence) {
  const std::optional<size_t> tensor = IndexOf(model, divergence.tensor);
  if (!tensor || candidate.size() != yardstick.truth.size()) return divergence.step;
  std::vector<double> errors;
  for (size_t s = 0; s < candidate.size(); ++s) {
    const std::vector<double>& truth = yardstick.truth[s].of(TensorKind::kGradient)[*tensor];
    const double scale = Distance(truth, std::vector<double>(truth.size()));
    errors.push_back(Distance(candidate[s].of(TensorKind::kGradient)[*tensor], truth) / (scale > 0 ? scale : 1));
  }
  const double largest = *std::max_element(errors.begin(), errors.end());
  for (size_t s = 0; s < errors.size(); ++s) {
    if (errors[s] >= largest / 2) return candidate[s].step;
  }
  return divergence.step;
}

double NoiseOf(const contract::ModelSpec& model, const Yardstick& yardstick, const Divergence& divergence) {
  const std::optional<size_t> tensor = IndexOf(model, divergence.tensor);
  if (divergence.quantity != contract::Name(TensorKind::kGradient) || !tensor) return 0;
  for (size_t s = 0; s < yardstick.truth.size(); ++s) {
    if (yardstick.truth[s].step != divergence.step) continue;
    const auto of = [&](const StepSight& sight) -> const auto& { return sight.of(TensorKind::kGradient)[*tensor]; };
    return std::max(Distance(of(yardstick.plain[s]), of(yardstick.truth[s])),
                    Distance(of(yardstick.other_plain[s]), of(yardstick.truth[s])));
  }
  return 0;
}

}  // namespace plumbline::conformance
