// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/truth_check.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "conformance/contract/trace.h"
#include "conformance/oracle/number_text.h"

namespace plumbline::conformance {
namespace {

using contract::TensorKind;
using reports::CheckOutcome;

// How much larger than the difference p - y of a token's probabilities and its label the two are themselves: |p - y|
// summed is 2 (1 - p of the label), p and y together are 2, and 1 - p is 1 - exp(-loss).
double Cancellation(double loss) { return 1 / -std::expm1(-loss); }

std::string Values(double reference, double witness, double limit) {
  return "reference " + ExactText(reference) + ", witness " + ExactText(witness) + ", allowed distance " +
         ShortText(limit, 3);
}

class TruthChecker {
 public:
  explicit TruthChecker(double tolerance) : tolerance_(tolerance) {}

  // Positive form: NaN is beyond every limit. What is not finite is no truth, whoever agrees; the limit may be Inf
  // then.
  void Compare(int64_t step, const std::string& quantity, const std::string& tensor, double reference, double witness,
               double scale) {
    ++result_.check.compared;
    const double limit = tolerance_ * scale;
    const double distance = std::abs(reference - witness);
    if (limit > 0) largest_share_ = std::max(largest_share_, distance / limit);
    if (std::isfinite(reference) && distance <= limit) return;
    if (!std::isfinite(reference) && !std::isfinite(witness)) {
      const auto text = tensor.empty() ? TraceText : ExactText;  // a loss is read from a trace
      End(CheckOutcome::kVacuous, step, quantity, tensor,
          "reference " + text(reference) + ", witness " + text(witness));
      return;
    }
    Differ(step, quantity, tensor, Values(reference, witness, limit));
  }

  // Numbers of steps, tokens and elements. False if they differ.
  bool SameCount(int64_t step, const std::string& quantity, const std::string& tensor, const char* who, int64_t seen,
                 int64_t expected) {
    if (seen == expected) return true;
    Differ(step, quantity, tensor,
           std::string(who) + " has " + std::to_string(seen) + ", expected " + std::to_string(expected));
    return false;
  }

  // Where all of a gradient may be rounding, two engines agree whatever they do: vacuous. Positive form: NaN has none.
  bool HasDigits(int64_t step, double loss) {
    if (loss > 0 && tolerance_ * Cancellation(loss) < 1) return true;
    if (result_.check.outcome != CheckOutcome::kPass) return false;
    result_.check.outcome = CheckOutcome::kVacuous;
    result_.check.detail = "step " + std::to_string(step) + ": loss is " + ShortText(loss, 3) +
                           ": the label's probability is 1 but for rounding, so that a gradient of zero would pass";
    return false;
  }

  RealResult Result() {
    if (result_.check.compared == 0 && !result_.divergence) result_.check.outcome = CheckOutcome::kVacuous;
    if (result_.check.outcome == CheckOutcome::kPass) {
      result_.check.detail = "two engines in fp64 agree in " + std::to_string(result_.check.compared) +
                             " values, at worst to " + ShortText(largest_share_, 2) + " of the limit";
    }
    return std::move(result_);
  }

 private:
  void Differ(int64_t step, const std::string& quantity, const std::string& tensor, const std::string& detail) {
    End(CheckOutcome::kFail, step, quantity, tensor, detail);
  }

  // The first counts: what follows from it says no more.
  void End(CheckOutcome outcome, int64_t step, const std::string& quantity, const std::string& tensor,
           const std::string& detail) {
    if (result_.divergence) return;
    result_.check.outcome = outcome;
    result_.check.detail =
        "step " + std::to_string(step) + ": " + quantity + (tensor.empty() ? "" : " of " + tensor) + ": " + detail;
    result_.divergence = Divergence{step, quantity, tensor, 1, result_.check.detail};
  }

  double tolerance_;
  double largest_share_ = 0;
  RealResult result_{{"truth", CheckOutcome::kPass, 0, ""}, std::nullopt};
};

void CompareStep(const std::vector<contract::ParameterSpec>& parameters, const StepSight& mine, const StepSight& other,
                 TruthChecker& checker) {
  const int64_t step = mine.step;
  if (!checker.SameCount(step, "step", "", "the witness", other.step, step)) return;
  checker.SameCount(step, "tokens", "", "the witness", other.tokens, mine.tokens);
  // A loss is log(sum of exp(z - max z)) - (z of the label - max z): the sum has a term of 1, and what is rounded there
  // is as large however small the logarithm is.
  constexpr double kLargestTerm = 1;
  checker.Compare(step, "loss", "", mine.loss, other.loss, std::max(kLargestTerm, std::abs(mine.loss)));
  if (!checker.HasDigits(step, mine.loss)) return;
  const double scale = LargestGradient(mine) * Cancellation(mine.loss);
  const auto& expected = mine.of(TensorKind::kGradient);
  const auto& seen = other.of(TensorKind::kGradient);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const int64_t numel = parameters[i].frozen ? 0 : parameters[i].numel();
    bool whole = true;
    for (const auto& [tensors, who] : {std::pair(&expected, "the reference"), std::pair(&seen, "the witness")}) {
      const int64_t held = i < tensors->size() ? std::ssize((*tensors)[i]) : -1;
      whole = checker.SameCount(step, "elements", parameters[i].name, who, held, numel) && whole;
    }
    if (!whole) continue;
    for (size_t k = 0; k < expected[i].size(); ++k) {
      checker.Compare(step, "gradient", parameters[i].name, expected[i][k], seen[i][k], scale);
    }
  }
}

}  // namespace

double LargestGradient(const StepSight& sight) {
  double largest = 0;
  for (const std::vector<double>& tensor : sight.of(TensorKind::kGradient)) {
    for (double value : tensor) largest = std::max(largest, std::abs(value));
  }
  return largest;
}

double SumTolerance(const contract::RealSpec& model, int64_t batch, double unit_roundoff) {
  const int64_t lengths = batch * model.positions + model.width + model.hidden + model.vocab;
  return 2 * unit_roundoff * static_cast<double>(model.layers * lengths);
}

double TruthTolerance(const contract::RealSpec& model, int64_t batch) { return SumTolerance(model, batch, 0x1p-53); }

RealResult CheckTruth(const contract::ModelSpec& model, int64_t batch, std::span<const StepSight> reference,
                      std::span<const StepSight> witness) {
  TruthChecker checker(TruthTolerance(model.real(), batch));
  const std::vector<contract::ParameterSpec> parameters = contract::Parameters(model);
  if (witness.size() < reference.size()) {
    checker.SameCount(reference[witness.size()].step, "steps", "", "the witness", std::ssize(witness),
                      std::ssize(reference));
  }
  for (size_t i = 0; i < std::min(reference.size(), witness.size()); ++i) {
    CompareStep(parameters, reference[i], witness[i], checker);
  }
  return checker.Result();
}

std::string WhyNoTruth(const RealResult& result) {
  if (result.check.outcome == CheckOutcome::kFail) {
    return "reference and witness disagree in fp64: " + result.check.detail;
  }
  return (result.divergence ? "the run has no finite values: " : "reference and witness cannot be compared: ") +
         result.check.detail;
}

}  // namespace plumbline::conformance
