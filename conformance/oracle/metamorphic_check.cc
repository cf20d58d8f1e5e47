// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/metamorphic_check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "conformance/contract/trace.h"
#include "conformance/oracle/number_text.h"
#include "conformance/oracle/same_number.h"
#include "conformance/oracle/truth_check.h"

namespace plumbline::conformance {
namespace {

using contract::Digest;
using contract::TensorKind;
using reports::CheckOutcome;

using Tensors = std::vector<std::vector<double>>;
using Limit = std::optional<double>;  // of a distance; nothing demands every bit

constexpr double kUnitRoundoff = 0x1p-24;  // fp32
constexpr const char* kNoGradient = "the gradient is zero everywhere: nothing could differ";

const std::vector<Digest>& Gradients(const StepDigest& step) {
  return step.tensors[static_cast<int>(TensorKind::kGradient)];
}

bool HasGradient(const RunDigest& run) {
  return !run.steps.empty() && std::all_of(run.steps.begin(), run.steps.end(), [](const StepDigest& step) {
    const std::vector<Digest>& digests = Gradients(step);
    return std::any_of(digests.begin(), digests.end(), [](const Digest& digest) { return digest.sum_squares != 0; });
  });
}

// What was compared, and the failure that leads: the value that is farthest beyond its limit, of the first quantity
// that has one.
class Comparison {
 public:
  Comparison(std::string relation, const contract::ModelSpec& model)
      : relation_(std::move(relation)), parameters_(contract::Parameters(model)) {}

  size_t num_tensors() const { return parameters_.size(); }

  // Positive form: NaN is beyond every limit. Nothing is near what is not finite, and a limit may be Inf where either
  // run has such a number. Without a limit it is the bits that count: -0 is not +0.
  void Compare(const std::string& quantity, size_t tensor, size_t index, double expected, double seen, Limit limit) {
    ++compared_;
    const double distance = std::abs(seen - expected);
    if (std::isfinite(expected) && std::isfinite(seen) && (limit ? distance <= *limit : SameNumber(expected, seen))) {
      if (limit > 0.0) largest_share_ = std::max(largest_share_, distance / *limit);
      return;
    }
    const std::string where = quantity == "gradient" ? "element " + std::to_string(index) + " " : "";
    const std::string allowed = limit > 0.0 ? ", allowed distance " + ShortText(*limit, 3) : "";
    Differ(quantity, tensor, distance,
           where + "is " + ExactText(seen) + ", by the relation " + ExactText(expected) + allowed);
  }

  void CompareNumber(const std::string& quantity, double expected, double seen, Limit limit) {
    Compare(quantity, kNone, 0, expected, seen, limit);
  }

  // Integers that fp64 may not hold.
  template <typename Integer>
  void CompareInteger(const std::string& quantity, size_t tensor, Integer expected, Integer seen) {
    ++compared_;
    if (expected == seen) return;
    Differ(quantity, tensor, 1, "is " + std::to_string(seen) + ", by the relation " + std::to_string(expected));
  }

  // Whether every element of every tensor of the model exists in both.
  bool SameSizes(const Tensors& expected, const Tensors& seen) {
    bool same = SameCount("tensors", expected.size(), seen.size()) && SameCount("tensors", num_tensors(), seen.size());
    for (size_t tensor = 0; same && tensor < seen.size(); ++tensor) {
      same = SameCount("elements of " + Name(tensor), expected[tensor].size(), seen[tensor].size());
    }
    return same;
  }

  bool SameCount(const std::string& quantity, size_t expected, size_t seen) {
    if (expected == seen) return true;
    CompareInteger(quantity, kNone, expected, seen);
    return false;
  }

  void set_step(int64_t step) { step_ = step; }
  void MakeVacuous(const char* why) { vacuous_ = why; }

  RealResult Result() const {
    RealResult result{{"metamorphic", CheckOutcome::kPass, compared_, relation_}, std::nullopt};
    if (worst_) {
      result.check.outcome = CheckOutcome::kFail;
      result.divergence = worst_;
      result.divergence->num_tensors = worst_->tensor.empty() ? 0 : num_tensors_;
      result.check.detail = relation_ + ": step " + std::to_string(worst_->step) + ": " + worst_->quantity +
                            (worst_->tensor.empty() ? "" : " of " + worst_->tensor) + ": " + worst_->detail;
      if (num_tensors_ > 1) result.check.detail += "; in " + std::to_string(num_tensors_) + " tensors";
    } else if (vacuous_ || compared_ == 0) {
      result.check.outcome = CheckOutcome::kVacuous;
      result.check.detail += std::string(": ") + (vacuous_ ? vacuous_ : "nothing was compared");
    } else if (largest_share_ > 0) {
      result.check.detail += ": at worst " + ShortText(largest_share_, 2) + " of the limit";
    }
    return result;
  }

 private:
  static constexpr size_t kNone = std::numeric_limits<size_t>::max();

  std::string Name(size_t tensor) const { return tensor == kNone ? "" : parameters_[tensor].name; }

  void Differ(const std::string& quantity, size_t tensor, double distance, const std::string& detail) {
    if (worst_ && worst_->quantity != quantity) return;
    if (!worst_ || last_tensor_ != tensor) ++num_tensors_;
    last_tensor_ = tensor;
    if (!std::isfinite(distance)) distance = std::numeric_limits<double>::infinity();
    if (worst_ && distance <= largest_distance_) return;
    largest_distance_ = distance;
    worst_ = Divergence{step_, quantity, Name(tensor), 0, detail};
  }

  std::string relation_;
  std::vector<contract::ParameterSpec> parameters_;
  int64_t step_ = 0;
  int64_t compared_ = 0;
  int64_t num_tensors_ = 0;
  size_t last_tensor_ = kNone;
  double largest_distance_ = 0;
  double largest_share_ = 0;
  std::optional<Divergence> worst_;
  const char* vacuous_ = nullptr;
};

// Gradients before the loss: they name a tensor, and the loss enters no training.
template <typename LimitOf>
void CompareEachGradient(const Tensors& expected, const Tensors& seen, const LimitOf& limit_of,
                         Comparison& comparison) {
  if (!comparison.SameSizes(expected, seen)) return;
  for (size_t tensor = 0; tensor < expected.size(); ++tensor) {
    const Limit limit = limit_of(tensor);
    for (size_t i = 0; i < expected[tensor].size(); ++i) {
      comparison.Compare("gradient", tensor, i, expected[tensor][i], seen[tensor][i], limit);
    }
  }
}

void CompareGradients(const Tensors& expected, const Tensors& seen, Limit limit, Comparison& comparison) {
  CompareEachGradient(
      expected, seen, [&](size_t) { return limit; }, comparison);
}

// The largest gradients of an untied head, and of all else: that has passed through the head's weights, which may be
// so large that the head's own would be nothing beside it.
struct LargestByHead {
  LargestByHead(const contract::ModelSpec& model, const StepSight& sight) {
    const std::vector<contract::ParameterSpec> parameters = contract::Parameters(model);
    for (const contract::ParameterSpec& parameter : parameters) is_head.push_back(parameter.name == "head.weight");
    for (bool head : {false, true}) {
      StepSight part = sight;
      Tensors& tensors = part.of(TensorKind::kGradient);
      for (size_t i = 0; i < std::min(tensors.size(), is_head.size()); ++i) {
        if (is_head[i] != head) tensors[i].clear();
      }
      (head ? of_head : of_others) = LargestGradient(part);
    }
  }

  double of(size_t tensor) const { return is_head[tensor] ? of_head : of_others; }

  std::vector<bool> is_head;
  double of_head = 0;
  double of_others = 0;
};

// How far a logit or score may be off, in units of the sum of the magnitudes of its terms: the sums of the forward pass
// before it, of each layer positions, width and hidden, and its own of width.
double ForwardTolerance(const contract::RealSpec& model) {
  const int64_t lengths = model.layers * (model.positions + model.width + model.hidden) + model.width;
  return 2 * kUnitRoundoff * static_cast<double>(lengths);
}

// (N1 a + N2 b) / N in fp64, whose roundings are 2^29 times smaller than those that the limit is about. Both have the
// same sizes.
Tensors Mean(const StepSight& first, const StepSight& second) {
  Tensors mean = first.of(TensorKind::kGradient);
  const Tensors& other = second.of(TensorKind::kGradient);
  const auto n1 = static_cast<double>(first.tokens), n2 = static_cast<double>(second.tokens);
  for (size_t tensor = 0; tensor < mean.size(); ++tensor) {
    for (size_t i = 0; i < mean[tensor].size(); ++i) {
      mean[tensor][i] = (n1 * mean[tensor][i] + n2 * other[tensor][i]) / (n1 + n2);
    }
  }
  return mean;
}

}  // namespace

RealResult CheckSameRuns(const std::string& relation, const contract::ModelSpec& model, const RunDigest& whole,
                         const RunDigest& variant) {
  RealResult result = CompareBitwise(relation, model, whole, variant);
  result.check.name = "metamorphic";
  if (result.check.outcome != CheckOutcome::kPass || (HasGradient(whole) && HasGradient(variant))) return result;
  result.check.outcome = CheckOutcome::kVacuous;
  result.check.detail = relation + ": " + kNoGradient;
  return result;
}

RealResult CheckSplitRuns(const contract::ModelSpec& model, const RunDigest& whole, const RunDigest& first,
                          const RunDigest& second) {
  Comparison comparison("split", model);
  const size_t count = whole.steps.size();
  comparison.CompareNumber("steps", static_cast<double>(count), static_cast<double>(first.steps.size()), 0);
  comparison.CompareNumber("steps", static_cast<double>(count), static_cast<double>(second.steps.size()), 0);
  for (size_t i = 0; i < std::min({count, first.steps.size(), second.steps.size()}); ++i) {
    const StepDigest &all = whole.steps[i], &one = first.steps[i], &two = second.steps[i];
    comparison.set_step(all.step);
    comparison.CompareNumber("tokens", static_cast<double>(one.tokens + two.tokens), static_cast<double>(all.tokens),
                             0);
    bool complete = true;
    for (const StepDigest* step : {&all, &one, &two}) {
      complete = comparison.SameCount("tensors", comparison.num_tensors(), Gradients(*step).size()) && complete;
    }
    for (size_t tensor = 0; complete && tensor < comparison.num_tensors(); ++tensor) {
      Digest sum = Gradients(one)[tensor];
      sum += Gradients(two)[tensor];
      const Digest& seen = Gradients(all)[tensor];
      comparison.CompareInteger("sum of the gradient", tensor, sum.sum, seen.sum);
      comparison.CompareInteger("indexed sum of the gradient", tensor, sum.sum_indexed, seen.sum_indexed);
    }
    comparison.CompareNumber("loss", one.loss + two.loss, all.loss, 0);
  }
  if (!HasGradient(whole) || !HasGradient(first) || !HasGradient(second)) comparison.MakeVacuous(kNoGradient);
  return comparison.Result();
}

RealResult CheckNearSteps(const std::string& relation, const contract::ModelSpec& model, int64_t batch,
                          const StepSight& whole, const StepSight& variant) {
  Comparison comparison(relation, model);
  const double tolerance = SumTolerance(model.real(), batch, kUnitRoundoff);
  const double largest = LargestGradient(whole);
  comparison.set_step(whole.step);
  comparison.CompareNumber("tokens", static_cast<double>(whole.tokens), static_cast<double>(variant.tokens), 0);
  CompareGradients(whole.of(TensorKind::kGradient), variant.of(TensorKind::kGradient), tolerance * largest, comparison);
  comparison.CompareNumber("loss", whole.loss, variant.loss, tolerance * std::abs(whole.loss));
  if (!(largest > 0)) comparison.MakeVacuous(kNoGradient);
  return comparison.Result();
}

RealResult CheckSplitSteps(const contract::ModelSpec& model, int64_t batch, const StepSight& whole,
                           const StepSight& first, const StepSight& second) {
  Comparison comparison("split", model);
  const double tolerance = SumTolerance(model.real(), batch, kUnitRoundoff);
  const auto n1 = static_cast<double>(first.tokens), n2 = static_cast<double>(second.tokens), n = n1 + n2;
  const double one = n1 / n * LargestGradient(first);
  const double two = n2 / n * LargestGradient(second);
  // Errors are those of what is added, which may cancel.
  const double largest = std::max(LargestGradient(whole), one + two);
  comparison.set_step(whole.step);
  comparison.CompareNumber("tokens", n, static_cast<double>(whole.tokens), 0);
  // A part of another size would be mixed with nothing.
  if (!comparison.SameSizes(first.of(TensorKind::kGradient), second.of(TensorKind::kGradient))) {
    return comparison.Result();
  }
  CompareGradients(Mean(first, second), whole.of(TensorKind::kGradient), tolerance * largest, comparison);
  const double loss = (n1 * first.loss + n2 * second.loss) / n;
  comparison.CompareNumber("loss", loss, whole.loss, tolerance * std::abs(whole.loss));
  if (!(one > 0) || !(two > 0)) comparison.MakeVacuous(kNoGradient);
  return comparison.Result();
}

RealResult CheckScaledSteps(const contract::ModelSpec& model, const std::vector<std::vector<int>>& exponents,
                            const StepSight& whole, const StepSight& scaled) {
  Comparison comparison("scaled", model);
  Tensors expected = whole.of(TensorKind::kGradient);
  bool any_scaled = false;
  for (size_t tensor = 0; tensor < expected.size(); ++tensor) {
    const std::vector<int>& columns = exponents[tensor];
    for (size_t i = 0; i < expected[tensor].size(); ++i) {
      const int exponent = columns[i % columns.size()];
      any_scaled |= exponent != 0 && expected[tensor][i] != 0;
      expected[tensor][i] = std::ldexp(expected[tensor][i], -exponent);
    }
  }
  comparison.set_step(whole.step);
  comparison.CompareNumber("tokens", static_cast<double>(whole.tokens), static_cast<double>(scaled.tokens), 0);
  CompareGradients(expected, scaled.of(TensorKind::kGradient), std::nullopt, comparison);
  comparison.CompareNumber("loss", whole.loss, scaled.loss, std::nullopt);
  if (!any_scaled) comparison.MakeVacuous("no gradient that is not zero was to be scaled");
  return comparison.Result();
}

RealResult CheckShiftedSteps(const std::string& relation, const contract::ModelSpec& model, int64_t batch,
                             const Shift& shift, const StepSight& whole, const StepSight& shifted) {
  Comparison comparison(relation, model);
  const double of_sums = SumTolerance(model.real(), batch, kUnitRoundoff);
  // A probability changes by at most 2 d of itself where no number of its softmax changes by more than d.
  const double of_shift = 2 * ForwardTolerance(model.real()) * shift.largest;
  const LargestByHead largest(model, whole);
  comparison.set_step(whole.step);
  comparison.CompareNumber("tokens", static_cast<double>(whole.tokens), static_cast<double>(shifted.tokens), 0);
  CompareEachGradient(
      whole.of(TensorKind::kGradient), shifted.of(TensorKind::kGradient),
      [&](size_t tensor) { return (of_sums + of_shift) * largest.of(tensor); }, comparison);
  comparison.CompareNumber("loss", whole.loss, shifted.loss, of_sums * std::abs(whole.loss) + of_shift);
  if (!(largest.of_others > 0)) comparison.MakeVacuous(kNoGradient);
  if (!(whole.loss > shift.least_loss)) comparison.MakeVacuous("logits are not so far apart as they were to be");
  if (!(of_sums + of_shift < 1)) comparison.MakeVacuous("the shift is so large that a gradient could be missing");
  return comparison.Result();
}

}  // namespace plumbline::conformance
