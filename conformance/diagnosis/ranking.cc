// SPDX-License-Identifier: Apache-2.0
#include "conformance/diagnosis/ranking.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>

#include "conformance/diagnosis/hypothesis.h"

namespace plumbline::conformance {
namespace {

using contract::TensorKind;

double SquaredDistance(const Values& a, const Values& b, size_t begin, size_t end) {
  double squares = 0;
  for (size_t i = begin; i < end; ++i) squares += (a[i] - b[i]) * (a[i] - b[i]);
  return squares;
}

int64_t CountDifferent(const Values& a, const Values& b, size_t begin, size_t end) {
  int64_t count = 0;
  for (size_t i = begin; i < end; ++i) count += a[i] != b[i];
  return count;
}

bool IsFinite(const Values& values) {
  return std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
}

// log2 of the number of ways to choose k of n.
double LogChoices(int64_t n, int64_t k) {
  const auto log_factorial = [](int64_t m) { return std::lgamma(static_cast<double>(m) + 1) / std::log(2.0); };
  return log_factorial(n) - log_factorial(k) - log_factorial(n - k);
}

// Whether the fit is more than chance, counted in bits: which elements differ, and with what value. Integers of a small
// range are often equal by chance, two bits each; floats are not. Every number taken from the candidate costs some.
bool IsMoreThanChance(const Evidence& evidence, int64_t num_explained, int num_fitted) {
  if (num_explained == 0) return false;
  constexpr double kNeeded = 16;  // some hundred predictions are tried: less than one false claim in a hundred
  constexpr double kPerFitted = 12;
  const double of_place = num_fitted == 0 ? LogChoices(static_cast<int64_t>(evidence.truth.size()), num_explained) : 0;
  const double of_value = (evidence.is_exact ? 2.0 : 8.0) * static_cast<double>(num_explained);
  return of_place + of_value >= kNeeded + kPerFitted * num_fitted;
}

// What a residual is to be by which a hypothesis alone explains a tensor of real numbers, whatever rounding allows.
constexpr double kCloseResidual = 0.05;

struct Fit {
  double residual = 1;
  std::string what;
  int num_fitted = 0;
  bool rests_on_enough = false;
  Values values;  // the prediction where it counts, else the truth
};

// The prediction on the parts where it is nearer than the truth, the truth on the others.
std::optional<Fit> FitOf(const Evidence& evidence, const Prediction& prediction) {
  if (prediction.values.size() != evidence.truth.size()) return std::nullopt;
  double left = 0;
  int64_t num_explained = 0;
  std::string ranks;
  Values values = evidence.truth;
  bool is_partial = false;
  for (const HeldRange& range : evidence.held) {
    const auto begin = static_cast<size_t>(range.begin);
    const auto end = static_cast<size_t>(range.end);
    const int64_t num_changed = CountDifferent(prediction.values, evidence.truth, begin, end);
    const double of_truth = SquaredDistance(evidence.candidate, evidence.truth, begin, end);
    const double of_prediction = SquaredDistance(evidence.candidate, prediction.values, begin, end);
    if (!(of_prediction < of_truth)) {
      left += of_truth;
      is_partial |= num_changed > 0;  // else the prediction says nothing of this part
      continue;
    }
    left += of_prediction;
    std::copy_n(prediction.values.begin() + range.begin, range.end - range.begin, values.begin() + range.begin);
    ranks += (ranks.empty() ? "" : ", ") + std::to_string(range.rank);
    num_explained += num_changed;
  }
  if (num_explained == 0) return std::nullopt;
  Fit fit{std::sqrt(left / SquaredDistance(evidence.candidate, evidence.truth, 0, evidence.truth.size())),
          prediction.what, prediction.num_fitted, false, std::move(values)};
  if (is_partial) {
    fit.what += (fit.what.empty() ? "" : ", ") + std::string("in the part of rank ") + ranks;
    ++fit.num_fitted;
  }
  if (evidence.is_number) {
    fit.rests_on_enough = fit.num_fitted == 0;
    return fit;
  }
  fit.rests_on_enough = IsMoreThanChance(evidence, num_explained, fit.num_fitted);
  return fit;
}

// A number has no elements to permute and no update of its own; what else it could be is listed by name.
Predictions OfNumber(const Hypothesis& hypothesis, const Evidence& evidence) {
  Predictions predictions;
  if (hypothesis.subject == Hypothesis::Subject::kGradient && !evidence.gradient.empty()) {
    predictions = hypothesis.predict(evidence);
  }
  for (const ChangedGradient& changed : evidence.changed) {
    if (changed.hypothesis == hypothesis.name) predictions.push_back({changed.what, changed.values});
  }
  return predictions;
}

// What a hypothesis about gradients says of a later quantity: the update used this gradient.
Predictions AsUpdates(const Evidence& evidence, Predictions gradients) {
  for (Prediction& prediction : gradients) {
    prediction.values = AfterUpdate(evidence.recipe, evidence.before, prediction.values, evidence.kind);
  }
  return gradients;
}

Predictions PredictionsOf(const Hypothesis& hypothesis, const Evidence& evidence) {
  if (evidence.is_number) return OfNumber(hypothesis, evidence);
  const bool is_gradient = evidence.kind == TensorKind::kGradient;
  switch (hypothesis.subject) {
    case Hypothesis::Subject::kUpdate:
      return is_gradient ? Predictions{} : hypothesis.predict(evidence);
    case Hypothesis::Subject::kGradient:
      if (is_gradient || evidence.gradient.empty()) return hypothesis.predict(evidence);
      return AsUpdates(evidence, hypothesis.predict(evidence));
    case Hypothesis::Subject::kContent:
    case Hypothesis::Subject::kCandidate:
      break;
  }
  return hypothesis.predict(evidence);
}

struct Scored {
  RankedHypothesis ranked;
  double level = 0;  // residuals below what rounding leaves are equal
  int num_fitted = 0;
  Values values;
};

// What rounding leaves of any prediction: residuals below it are equal.
double FloorOf(const Evidence& evidence) {
  if (evidence.is_exact || !IsFinite(evidence.candidate)) return 0;
  return 4 * evidence.noise / std::sqrt(SquaredDistance(evidence.candidate, evidence.truth, 0, evidence.truth.size()));
}

// A fit that rounding alone allows is no claim where rounding allows another prediction as well: which of the two it is
// cannot be told. (A gradient times 3, 4 or 12 is nearly the same step of AdamW, and so is one with another epsilon.)
void DropAmbiguous(const Evidence& evidence, std::vector<Scored>& scored) {
  const double divergence = SquaredDistance(evidence.candidate, evidence.truth, 0, evidence.truth.size());
  const auto differ = [&](const Scored& a, const Scored& b) {
    const double apart = SquaredDistance(a.values, b.values, 0, evidence.truth.size());
    return !(apart <= kCloseResidual * kCloseResidual * divergence);
  };
  std::vector<bool> ambiguous;
  for (const Scored& entry : scored) {
    ambiguous.push_back(entry.ranked.residual > kCloseResidual &&
                        std::any_of(scored.begin(), scored.end(),
                                    [&](const Scored& other) { return other.ranked.fits && differ(entry, other); }));
  }
  for (size_t i = 0; i < scored.size(); ++i) scored[i].ranked.fits &= !ambiguous[i];
}

}  // namespace

double ResidualLimit(const Evidence& evidence) {
  if (evidence.is_exact) return 0;
  const double distance = std::sqrt(SquaredDistance(evidence.candidate, evidence.truth, 0, evidence.truth.size()));
  const double of_rounding = 4 * evidence.noise / distance;
  // A number is near another one by chance much more easily than a tensor is.
  return evidence.is_number ? std::min(kCloseResidual, of_rounding)
                            : std::max(kCloseResidual, std::min(0.5, of_rounding));
}

std::vector<RankedHypothesis> RankHypotheses(const Evidence& evidence, size_t most) {
  std::vector<Scored> scored;
  if (evidence.truth.size() != evidence.candidate.size() || evidence.truth == evidence.candidate) return {};
  const bool is_finite = IsFinite(evidence.candidate);
  const double limit = is_finite ? ResidualLimit(evidence) : 0;
  const double floor = FloorOf(evidence);
  for (const Hypothesis& hypothesis : Hypotheses()) {
    if (!is_finite && hypothesis.subject != Hypothesis::Subject::kCandidate) continue;
    std::optional<Scored> best;
    for (const Prediction& prediction : PredictionsOf(hypothesis, evidence)) {
      const std::optional<Fit> fit =
          is_finite ? FitOf(evidence, prediction) : std::optional<Fit>({0, prediction.what, 0, true, {}});
      if (!fit || !(fit->residual < 1)) continue;
      Scored entry{
          {std::string(hypothesis.name), std::string(hypothesis.says) + (fit->what.empty() ? "" : ": " + fit->what),
           fit->residual, fit->rests_on_enough && fit->residual <= limit},
          std::max(fit->residual, floor),
          fit->num_fitted,
          fit->values};
      const auto key = [](const Scored& s) { return std::tuple(!s.ranked.fits, s.level, s.num_fitted); };
      if (!best || key(entry) < key(*best)) best = std::move(entry);
    }
    if (best) scored.push_back(std::move(*best));
  }
  if (is_finite && !evidence.is_number) DropAmbiguous(evidence, scored);
  std::stable_sort(scored.begin(), scored.end(), [](const Scored& a, const Scored& b) {
    return std::tuple(!a.ranked.fits, a.level, a.num_fitted) < std::tuple(!b.ranked.fits, b.level, b.num_fitted);
  });
  std::vector<RankedHypothesis> ranked;
  for (Scored& entry : scored) {
    if (ranked.size() < most) ranked.push_back(std::move(entry.ranked));
  }
  return ranked;
}

}  // namespace plumbline::conformance
