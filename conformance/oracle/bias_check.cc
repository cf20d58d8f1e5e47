// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/bias_check.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "conformance/contract/dtype.h"
#include "conformance/oracle/number_text.h"
#include "conformance/oracle/quantiles.h"
#include "conformance/oracle/storage_rounding.h"

namespace plumbline::conformance {
namespace {

using contract::TensorKind;
using reports::CheckOutcome;
using Sights = std::span<const StepSight>;

constexpr size_t kMinSteps = 3;  // fewer have no neighbours to correlate, and hardly a scatter

std::string Text(double value) { return ShortText(value, 3); }

std::vector<contract::ParameterSpec> LargeParameters(const contract::ModelSpec& model) {
  std::vector<contract::ParameterSpec> large;
  for (const contract::ParameterSpec& parameter : contract::Parameters(model)) {
    if (!parameter.frozen && parameter.numel() >= kBiasMinNumel) large.push_back(parameter);
  }
  return large;
}

// What keeps the sights from being compared at all, or nothing.
std::string ShapeProblem(const std::vector<contract::ParameterSpec>& parameters, Sights sights, const char* who) {
  for (const StepSight& sight : sights) {
    const auto& tensors = sight.of(TensorKind::kGradient);
    for (const contract::ParameterSpec& parameter : parameters) {
      const auto tensor = static_cast<size_t>(parameter.tensor_id);
      if (tensor < tensors.size() && tensors[tensor].size() == static_cast<size_t>(parameter.numel())) continue;
      return std::string(who) + " has no whole gradient of " + parameter.name;
    }
  }
  return "";
}

// The first step whose gradient of the tensor holds something that is not finite.
std::optional<size_t> FirstNotFinite(Sights sights, size_t tensor) {
  for (size_t s = 0; s < sights.size(); ++s) {
    const std::vector<double>& values = sights[s].of(TensorKind::kGradient)[tensor];
    if (!std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); })) return s;
  }
  return std::nullopt;
}

double StudentUpperQuantile(double degrees, double tail) {
  return std::sqrt(FisherUpperQuantile(1, degrees, 2 * tail));
}

double MeanOf(std::span<const double> values) {
  double sum = 0;
  for (double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

RealResult Ended(CheckOutcome outcome, const std::string& detail) {
  return {{"bias", outcome, 0, detail}, std::nullopt};
}

std::string Describe(const SlopeSample& sample, const SlopeFinding& finding) {
  return sample.name + " is 1 " + (finding.mean < 0 ? "- " : "+ ") + Text(std::abs(finding.mean)) +
         " times the truth on average over " + std::to_string(sample.slopes.size()) + " unrelated steps, limit " +
         Text(finding.limit) + " (one step scatters by " + Text(finding.deviation) + ", t " + Text(finding.student_t) +
         ")";
}

// "layers.0.attn.out.weight 0.00031 of 4096 as if 120".
std::string Sight(const SlopeSample& sample, const SlopeFinding& finding) {
  return sample.name + " " + Text(finding.found_from) + " (of " + std::to_string(sample.numel) + " elements " +
         Text(finding.effective_elems) + " independent)";
}

}  // namespace

bool SlopeFinding::within() const { return std::abs(mean) <= limit; }

std::vector<SlopeSample> MeasureSlopes(const contract::ModelSpec& model, Sights truth, Sights candidate) {
  std::vector<SlopeSample> samples;
  for (const contract::ParameterSpec& parameter : LargeParameters(model)) {
    SlopeSample sample{static_cast<size_t>(parameter.tensor_id), parameter.name, parameter.numel(), {}, 0};
    for (size_t s = 0; s < truth.size(); ++s) {
      const std::vector<double>& t = truth[s].of(TensorKind::kGradient)[sample.tensor];
      const std::vector<double>& g = candidate[s].of(TensorKind::kGradient)[sample.tensor];
      double along = 0, along_squares = 0, squares = 0;
      for (size_t i = 0; i < t.size(); ++i) {
        const double product = (g[i] - t[i]) * t[i];
        along += product;
        along_squares += product * product;
        squares += t[i] * t[i];
      }
      sample.slopes.push_back(along / squares);
      sample.independent_variance += along_squares / squares / squares / static_cast<double>(truth.size());
    }
    samples.push_back(std::move(sample));
  }
  return samples;
}

double LegalSlope(const contract::Gpt2Spec& model, contract::DType storage) {
  // Tensors that the plain engine rounds to storage on a path from the embedding to the loss and back: in a layer 13
  // forward (two norms, q k v, scores, probabilities, their product with v, projection, two sums, up, its bias, the
  // activation, down), outside of layers 3 (the sum of the embeddings, the last norm, logits), and as many backward.
  constexpr double kRoundingsOfLayer = 2 * 13;
  constexpr double kRoundingsOutside = 2 * 3;
  constexpr double kTimesAsMany = 4;  // S^2 of docs/tolerance.md
  const double u = HalfUlp(storage);
  return kTimesAsMany * (kRoundingsOfLayer * static_cast<double>(model.layers) + kRoundingsOutside) * u * u / 3;
}

SlopeFinding JudgeSlopes(const SlopeSample& sample, double legal_slope) {
  const auto num_steps = static_cast<double>(sample.slopes.size());
  SlopeFinding finding;
  finding.mean = MeanOf(sample.slopes);
  double squares = 0, neighbours = 0;
  for (size_t s = 0; s < sample.slopes.size(); ++s) {
    const double distance = sample.slopes[s] - finding.mean;
    squares += distance * distance;
    if (s > 0) neighbours += distance * (sample.slopes[s - 1] - finding.mean);
  }
  const double variance = squares / (num_steps - 1);
  finding.deviation = std::sqrt(variance);
  const double standard_error = finding.deviation / std::sqrt(num_steps);
  const double chance = StudentUpperQuantile(num_steps - 1, kBiasFalseAlarmRate / 2);
  finding.limit = chance * standard_error + legal_slope;
  // The legal slope may work against the bias, so it counts twice.
  finding.found_from =
      (chance + StudentUpperQuantile(num_steps - 1, 1 - kBiasPower)) * standard_error + 2 * legal_slope;
  finding.student_t = standard_error > 0 ? finding.mean / standard_error : 0;
  finding.effective_elems =
      variance > 0 ? static_cast<double>(sample.numel) * sample.independent_variance / variance : 0;
  finding.lag_one = squares > 0 ? neighbours / squares : 0;
  return finding;
}

RealResult CheckBias(const contract::ModelSpec& model, Sights truth, Sights candidate) {
  const std::vector<contract::ParameterSpec> large = LargeParameters(model);
  if (candidate.size() != truth.size()) {
    return Ended(CheckOutcome::kFail, "the candidate has " + std::to_string(candidate.size()) + " steps, the truth " +
                                          std::to_string(truth.size()));
  }
  for (const auto& [sights, who] : {std::pair<Sights, const char*>{truth, "the truth"}, {candidate, "the candidate"}}) {
    if (const std::string problem = ShapeProblem(large, sights, who); !problem.empty()) {
      return Ended(CheckOutcome::kFail, problem);
    }
  }
  if (truth.size() < kMinSteps || large.empty()) {
    return Ended(CheckOutcome::kVacuous, std::to_string(truth.size()) + " steps, " + std::to_string(large.size()) +
                                             " tensors of " + std::to_string(kBiasMinNumel) +
                                             " elements or more: nothing shows a small bias");
  }
  RealResult result = Ended(CheckOutcome::kPass, "");
  const double legal = LegalSlope(model.gpt2(), candidate.front().storage);
  std::string seen, blind;
  for (const SlopeSample& sample : MeasureSlopes(model, truth, candidate)) {
    result.check.compared += sample.numel * static_cast<int64_t>(truth.size());
    const auto report = [&](const std::string& detail) {
      const int64_t before = result.divergence ? result.divergence->num_tensors : 0;
      result.check.outcome = CheckOutcome::kFail;
      result.check.detail = detail;
      result.divergence = Divergence{truth.front().step, "gradient", sample.name, before + 1, detail};
    };
    if (const auto step = FirstNotFinite(candidate, sample.tensor)) {
      report(sample.name + " is not finite in unrelated step " + std::to_string(*step));
      continue;
    }
    const SlopeFinding finding = JudgeSlopes(sample, legal);
    if (!std::isfinite(finding.limit)) {
      blind += (blind.empty() ? "" : "; ") + sample.name + " has no truth to compare with in some step";
      continue;
    }
    if (!finding.within()) report("gradient of " + Describe(sample, finding));
    std::string& list = finding.sees() ? seen : blind;
    list += (list.empty() ? "" : "; ") + Sight(sample, finding);
  }
  if (result.check.outcome == CheckOutcome::kFail) return result;
  if (!blind.empty()) {
    result.check.outcome = CheckOutcome::kVacuous;
    result.check.detail = "a bias of 2^-10 would not be found with 95 % in: " + blind;
    return result;
  }
  result.check.detail =
      std::to_string(truth.size()) + " unrelated steps; with 95 % a bias is found from this size on: " + seen;
  return result;
}

}  // namespace plumbline::conformance
