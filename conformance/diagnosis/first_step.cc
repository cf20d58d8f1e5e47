// SPDX-License-Identifier: Apache-2.0
#include "conformance/diagnosis/first_step.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "conformance/oracle/gradient_region.h"

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

// The elements that the divergence is about.
std::vector<size_t> ElementsOf(const contract::ModelSpec& model, size_t tensor, const Divergence& divergence) {
  std::vector<size_t> named, all;
  for (const GradientRegion& region : GradientRegions(model)) {
    if (region.tensor != tensor) continue;
    const bool is_named = divergence.detail.starts_with(region.name + ":");
    ForEachElement(region, [&](size_t i) {
      all.push_back(i);
      if (is_named) named.push_back(i);
    });
  }
  return named.empty() ? all : named;
}

std::vector<double> Pick(const StepSight& sight, size_t tensor, const std::vector<size_t>& elements) {
  const std::vector<double>& values = sight.of(TensorKind::kGradient)[tensor];
  std::vector<double> picked;
  for (size_t i : elements) picked.push_back(i < values.size() ? values[i] : 0);
  return picked;
}

}  // namespace

int64_t FirstStepOf(const contract::ModelSpec& model, const Yardstick& yardstick, std::span<const StepSight> candidate,
                    const Divergence& divergence) {
  const std::optional<size_t> tensor = IndexOf(model, divergence.tensor);
  if (!tensor || candidate.size() != yardstick.truth.size() || candidate.empty()) return divergence.step;
  const std::vector<size_t> elements = ElementsOf(model, *tensor, divergence);
  std::vector<double> errors;
  for (size_t s = 0; s < candidate.size(); ++s) {
    const std::vector<double> truth = Pick(yardstick.truth[s], *tensor, elements);
    const auto error_of = [&](const StepSight& sight) { return Distance(Pick(sight, *tensor, elements), truth); };
    const double plain = std::max(error_of(yardstick.plain[s]), error_of(yardstick.other_plain[s]));
    const double error = error_of(candidate[s]);
    errors.push_back(plain > 0 ? error / plain : (error > 0 ? HUGE_VAL : 0));
  }
  const double least = std::min(kBeyondRounding, *std::max_element(errors.begin(), errors.end()) / 2);
  for (size_t s = 0; s < errors.size(); ++s) {
    if (errors[s] >= least) return candidate[s].step;
  }
  return divergence.step;
}

std::string OtherStepText(int64_t worst, int64_t first) {
  if (worst == first) return "";
  return "; of the single steps " + std::to_string(worst) + " is the worst and " + std::to_string(first) +
         " the first that is wrong";
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
