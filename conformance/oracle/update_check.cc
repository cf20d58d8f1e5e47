// SPDX-License-Identifier: Apache-2.0
// CheckUpdate and CheckSkipped: what one step did to moments, master weights and weights, from the candidate's own
// gradient. Quantities are judged in the order in which a step computes them; a later one is judged by what the engine
// stored of the earlier ones, so that one mistake is named once.
#include <algorithm>
#include <cmath>

#include "conformance/oracle/number_text.h"
#include "conformance/oracle/real_check.h"
#include "conformance/oracle/same_number.h"
#include "conformance/oracle/schedule_formula.h"
#include "conformance/oracle/storage_rounding.h"
#include "conformance/oracle/update_formula.h"

namespace plumbline::conformance {
namespace {

using contract::DType;
using contract::ParameterSpec;
using contract::RealParameterState;
using contract::TensorKind;
using reports::CheckOutcome;

// What a step must have left, collected finding by finding.
class Findings {
 public:
  Findings(const char* check, int64_t step) : check_(check), step_(step) {}

  void Count(int64_t values = 1) { compared_ += values; }

  // Later findings of the same quantity count tensors; of another one they are consequences.
  void Add(const std::string& quantity, const std::string& tensor, const std::string& detail) {
    if (!divergence_) divergence_ = Divergence{step_, quantity, tensor, 0, detail};
    if (divergence_->quantity == quantity) ++divergence_->num_tensors;
  }

  RealResult Result(const std::string& vacuous, const std::string& passing = "") const {
    RealResult result{{check_, CheckOutcome::kPass, compared_, passing}, divergence_};
    if (divergence_) {
      result.check.outcome = CheckOutcome::kFail;
      result.check.detail = "step " + std::to_string(step_) + ": " + divergence_->quantity +
                            (divergence_->tensor.empty() ? "" : " of " + divergence_->tensor) + ": " +
                            divergence_->detail;
      if (divergence_->num_tensors > 1) {
        result.check.detail += "; in " + std::to_string(divergence_->num_tensors) + " tensors";
      }
    } else if (compared_ == 0 || !vacuous.empty()) {
      result.check.outcome = CheckOutcome::kVacuous;
      result.check.detail = compared_ == 0 ? "nothing was compared" : vacuous;
    }
    return result;
  }

  bool failed() const { return divergence_.has_value(); }

 private:
  std::string check_;
  int64_t step_;
  int64_t compared_ = 0;
  std::optional<Divergence> divergence_;
};

// Whether `before` and `after` have what the case has, so that elements can be compared.
bool CheckShapes(const contract::Case& spec, const std::vector<ParameterSpec>& parameters,
                 const std::vector<RealParameterState>& before, const StepSight& after, Findings& findings) {
  const auto expected = [&](TensorKind kind, const ParameterSpec& parameter) -> int64_t {
    const bool kept =
        kind == TensorKind::kMaster || kind == TensorKind::kWeight ||
        (!parameter.frozen &&
         (kind == TensorKind::kGradient || (kind == TensorKind::kMoment && contract::HasMoment(spec.config)) ||
          (kind == TensorKind::kSecondMoment && contract::HasSecondMoment(spec.config))));
    return kept ? parameter.numel() : 0;
  };
  for (TensorKind kind : contract::kTensorKinds) {
    for (size_t i = 0; i < parameters.size(); ++i) {
      const int64_t numel = expected(kind, parameters[i]);
      const auto& tensors = after.of(kind);
      int64_t held = numel;  // the state before has no gradient, and weights follow from the master weights
      if (i >= before.size()) {
        held = -1;
      } else if (kind == TensorKind::kMaster) {
        held = static_cast<int64_t>(before[i].master.size());
      } else if (kind == TensorKind::kMoment) {
        held = static_cast<int64_t>(before[i].moment.size());
      } else if (kind == TensorKind::kSecondMoment) {
        held = static_cast<int64_t>(before[i].second_moment.size());
      }
      const int64_t seen = i < tensors.size() ? static_cast<int64_t>(tensors[i].size()) : -1;
      if (seen == numel && held == numel) continue;
      findings.Add(std::string(contract::Name(kind)), parameters[i].name,
                   "has " + std::to_string(seen) + " elements after and " + std::to_string(held) +
                       " before the step; the case has " + std::to_string(numel));
    }
  }
  return !findings.failed();
}

bool GradientIsFinite(const StepSight& after) {
  for (const std::vector<double>& tensor : after.of(TensorKind::kGradient)) {
    if (!std::all_of(tensor.begin(), tensor.end(), [](double value) { return std::isfinite(value); })) return false;
  }
  return true;
}

bool AreZero(const std::vector<Bounded>& lrs) {
  return std::all_of(lrs.begin(), lrs.end(), [](const Bounded& lr) { return lr.value == 0; });
}

// Whether an engine that computes in fp32 may lose a number, for which the formula has one: its square, which norms and
// second moments are made of, is near the end of fp32's range, 2^128. NaN and Inf are for the formula to demand.
bool IsLarge(double value) {
  constexpr double kLarge = 0x1p63;
  return std::isfinite(value) && std::abs(value) >= kLarge;
}

// A second moment is a square already.
bool IsLarge(TensorKind kind, double value) {
  return IsLarge(kind == TensorKind::kSecondMoment ? std::sqrt(value) : value);
}

template <typename Number>
bool AnyIsLarge(TensorKind kind, const std::vector<Number>& values) {
  return std::any_of(values.begin(), values.end(), [&](Number value) { return IsLarge(kind, value); });
}

// What it says is for CheckLossScale.
void CheckScalerIsReported(const contract::Case& spec, const StepSight& after, Findings& findings) {
  findings.Count();
  const bool is_reported = after.real.loss_scaler.has_value();
  if (is_reported == contract::HasDynamicLossScale(spec.config)) return;
  findings.Add("loss_scaler", "", is_reported ? "is reported, and the case has none" : "is not reported");
}

class UpdateCheck {
 public:
  UpdateCheck(const contract::Case& spec, const RealStart& start, const StepSight& after)
      : spec_(spec),
        start_(start),
        before_(start.state),
        after_(after),
        parameters_(contract::Parameters(spec.model)),
        findings_("update", after.step) {}

  RealResult Run() {
    if (!CheckShapes(spec_, parameters_, before_, after_, findings_)) return findings_.Result("");
    CheckScalars();
    for (TensorKind kind : {TensorKind::kMoment, TensorKind::kSecondMoment, TensorKind::kMaster, TensorKind::kWeight}) {
      for (size_t i = 0; i < parameters_.size(); ++i) CheckTensor(kind, i);
    }
    // An engine that updates nothing would pass where half of all weights do not visibly move. In a step whose rates
    // are 0 nothing may, to the bit.
    const bool visible = rests_ || (num_visible_ > 0 && 2 * num_visible_ >= num_trained_);
    const std::string vacuous = "step " + std::to_string(after_.step) + " moves " + std::to_string(num_visible_) +
                                " of " + std::to_string(num_trained_) +
                                " master weights by more than rounding: an update could not be told from none";
    return findings_.Result(!large_.empty() ? large_
                            : visible       ? ""
                                            : vacuous,
                            "nearest to its bound: " + nearest_ + ", " + ShortText(nearest_share_, 3) + " of it");
  }

 private:
  void CheckScalars() {
    findings_.Count();
    if (after_.real.skipped) findings_.Add("skipped", "", "the step was skipped");
    if (!GradientIsFinite(after_)) findings_.Add("gradient", "", "is not finite, and the step was not skipped");
    const std::vector<Bounded> lrs = ScheduledLr(spec_.config, after_.step);
    rests_ = AreZero(lrs) && !AlwaysRests();
    findings_.Count(static_cast<int64_t>(lrs.size()));
    if (lrs.size() != after_.real.lr.size()) {
      findings_.Add("lr", "", std::to_string(after_.real.lr.size()) + " groups for " + std::to_string(lrs.size()));
      return;
    }
    for (size_t i = 0; i < lrs.size(); ++i) {
      if (lrs[i].Holds(after_.real.lr[i])) continue;
      findings_.Add("lr", "",
                    "of group " + std::to_string(i) + " is " + TraceText(after_.real.lr[i]) + ", scheduled " +
                        ExactText(lrs[i].value));
    }
    CheckNorm();
    CheckHistory();
    CheckScalerIsReported(spec_, after_, findings_);
  }

  // Of the steps up to two later: a warm-up from 0 rests in its first two.
  bool AlwaysRests() const {
    for (int64_t step = 0; step <= after_.step + 2; ++step) {
      if (!AreZero(ScheduledLr(spec_.config, step))) return false;
    }
    return true;
  }

  // Of what clipping does not pass over.
  void CheckNorm() {
    double squares = 0;
    int64_t numel = 0;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (IsExempt(spec_.config, GroupOf(spec_.config, parameters_[i].name))) continue;
      const std::vector<double>& tensor = after_.of(TensorKind::kGradient)[i];
      for (double value : tensor) squares += value * value;
      numel += static_cast<int64_t>(tensor.size());
    }
    findings_.Count();
    const double norm = std::sqrt(squares);
    norm_is_large_ = IsLarge(norm);
    if (norm_is_large_) return NoteLarge("gradient_norm", "");
    if (std::isfinite(norm) && std::abs(after_.real.gradient_norm - norm) <= NormBound(numel) * norm) return;
    findings_.Add("gradient_norm", "",
                  "is " + TraceText(after_.real.gradient_norm) + ", that of the gradient is " + ExactText(norm));
  }

  void CheckHistory() {
    const std::optional<contract::NormHistory>& seen = after_.real.norm_history;
    if (seen.has_value() != contract::HasNormHistory(spec_.config)) {
      findings_.Add("norm_history", "", seen ? "is reported, and the case has none" : "is not reported");
    }
    if (!seen || findings_.failed()) return;
    findings_.Count(3);
    const BoundedHistory next =
        NextHistory(spec_.config.adaptive_clipping, start_.norm_history, after_.real.gradient_norm);
    const auto demand = [&](const char* what, double stored, const Bounded& expected) {
      if (expected.Holds(stored)) return;
      findings_.Add(
          "norm_history", "",
          std::string("its ") + what + " is " + TraceText(stored) + ", the formula says " + ExactText(expected.value));
    };
    demand("count", static_cast<double>(seen->count), {static_cast<double>(start_.norm_history.count + 1), 0});
    demand("mean", seen->mean, next.mean);
    demand("variance", seen->variance, next.variance);
  }

  UpdateRule RuleOf(const ParameterSpec& parameter) const {
    UpdateRule rule;
    const size_t group = GroupOf(spec_.config, parameter.name);
    rule.optimizer = spec_.config.optimizer;
    rule.params = spec_.config.params;
    if (group < after_.real.lr.size()) rule.params.lr = after_.real.lr[group];  // checked against the schedule
    const Betas betas = ScheduledBetas(spec_.config, group, after_.step);
    rule.params.beta1 = betas.first;
    rule.params.beta2 = betas.second;
    rule.beta1_units = betas.first_units;
    rule.params.weight_decay = WeightDecayOf(spec_.config, group);
    if (!IsExempt(spec_.config, group)) rule.clipping = ClippingOf(LargestNorm(), after_.real.gradient_norm);
    rule.t = start_.num_updates + 1;
    return rule;
  }

  // What the whole norm is clipped to; 0: nothing.
  double LargestNorm() const {
    if (!contract::HasNormHistory(spec_.config)) return spec_.config.gradient_clipping;
    return HistoryThreshold(spec_.config.adaptive_clipping, start_.norm_history);
  }

  bool ClipsUnitsOf(const ParameterSpec& parameter) const {
    return spec_.config.adaptive_clipping.kind == contract::AdaptiveClipping::Kind::kUnit && !parameter.frozen &&
           !IsExempt(spec_.config, GroupOf(spec_.config, parameter.name));
  }

  // LAMB's, from all of the tensor. A NaN among its moments makes it one, and the elements are then named by it.
  Bounded RatioOf(const UpdateRule& rule, size_t tensor) const {
    if (rule.optimizer != contract::OptimizerKind::kLamb) return {1, 0};
    std::vector<Bounded> directions;
    for (size_t i = 0; i < before_[tensor].master.size(); ++i) {
      directions.push_back(LambDirection(rule, InputOf(tensor, i), Value(TensorKind::kMoment, tensor, i),
                                         Value(TensorKind::kSecondMoment, tensor, i)));
    }
    return LambRatio(rule.params, before_[tensor].master, directions);
  }

  // Nothing is compared then that may have been made of such a number, and the step is VACUOUS unless it fails
  // otherwise: a gradient that has one by the engine's own fault is another check's finding.
  void NoteLarge(const std::string& quantity, const std::string& tensor) {
    if (!large_.empty()) return;
    large_ = "step " + std::to_string(after_.step) + ": " + quantity + (tensor.empty() ? "" : " of " + tensor) +
             " comes to 2^63 or more, of which fp32 does not hold the square: an engine may have lost it";
  }

  bool BeginsLarge(size_t tensor) const {
    const RealParameterState& state = before_[tensor];
    const bool is_clipped = norm_is_large_ && LargestNorm() > 0;
    return is_clipped || AnyIsLarge(TensorKind::kGradient, after_.of(TensorKind::kGradient)[tensor]) ||
           AnyIsLarge(TensorKind::kMaster, state.master) || AnyIsLarge(TensorKind::kMoment, state.moment) ||
           AnyIsLarge(TensorKind::kSecondMoment, state.second_moment);
  }

  double Value(TensorKind kind, size_t tensor, size_t element) const {
    const std::vector<double>& values = after_.of(kind)[tensor];
    return values.empty() ? 0 : values[element];
  }

  UpdateInput InputOf(size_t tensor, size_t element) const {
    const RealParameterState& state = before_[tensor];
    return {state.master[element], state.moment.empty() ? 0 : state.moment[element],
            state.second_moment.empty() ? 0 : state.second_moment[element],
            Value(TensorKind::kGradient, tensor, element)};
  }

  Bounded Expected(TensorKind kind, const UpdateRule& rule, size_t tensor, size_t element) {
    const UpdateInput before = InputOf(tensor, element);
    if (kind == TensorKind::kMoment) return NextMoment(rule, before);
    if (kind == TensorKind::kSecondMoment) return NextSecondMoment(rule, before);
    const Bounded master = NextMaster(rule, before, Value(TensorKind::kMoment, tensor, element),
                                      Value(TensorKind::kSecondMoment, tensor, element));
    ++num_trained_;
    if (std::abs(master.value - before.master) > master.bound) ++num_visible_;
    return master;
  }

  void CheckTensor(TensorKind kind, size_t tensor) {
    const std::vector<double>& values = after_.of(kind)[tensor];
    const ParameterSpec& parameter = parameters_[tensor];
    UpdateRule rule = RuleOf(parameter);
    std::vector<Clipping> of_units;
    if (ClipsUnitsOf(parameter)) {
      of_units = UnitClippings(parameter, spec_.config.adaptive_clipping, after_.of(TensorKind::kGradient)[tensor],
                               before_[tensor].master);
    }
    if (kind == TensorKind::kMaster && !parameter.frozen) rule.ratio = RatioOf(rule, tensor);
    if (kind != TensorKind::kWeight && !parameter.frozen && BeginsLarge(tensor)) {
      return NoteLarge(std::string(contract::Name(kind)), parameter.name);
    }
    findings_.Count(static_cast<int64_t>(values.size()));
    std::string first;
    int64_t num_wrong = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      Bounded expected;
      if (kind == TensorKind::kWeight) {
        expected.value = RoundToStorage(after_.of(TensorKind::kMaster)[tensor][i], after_.storage);
      } else if (parameter.frozen) {
        expected.value = before_[tensor].master[i];
      } else {
        if (!of_units.empty()) {
          rule.clipping = of_units[static_cast<size_t>(UnitOf(parameter, static_cast<int64_t>(i)))];
        }
        expected = Expected(kind, rule, tensor, i);
      }
      const bool exact = kind == TensorKind::kWeight || parameter.frozen;
      if (!exact && IsLarge(kind, expected.value)) {
        NoteLarge(std::string(contract::Name(kind)), parameter.name);
        continue;
      }
      if (!exact) KeepNearest(kind, parameter, values[i], expected);
      if (exact ? SameNumber(values[i], expected.value) : expected.Holds(values[i])) continue;
      if (++num_wrong > 1) continue;
      first = "element " + std::to_string(i) + " is " + ExactText(values[i]) + ", " +
              (kind == TensorKind::kWeight ? "the master weight rounds to "
               : parameter.frozen          ? "frozen at "
                                           : "the formula says ") +
              ExactText(expected.value);
      if (!exact) first += ", with a bound of " + ExactText(expected.bound);
    }
    if (num_wrong == 0) return;
    findings_.Add(std::string(contract::Name(kind)), parameter.name,
                  first + "; " + std::to_string(num_wrong) + " of " + std::to_string(values.size()) + " elements");
  }

  void KeepNearest(TensorKind kind, const ParameterSpec& parameter, double stored, const Bounded& expected) {
    if (expected.bound == 0) return;
    const double share = std::abs(stored - expected.value) / expected.bound;
    if (!(share > nearest_share_)) return;
    nearest_share_ = share;
    nearest_ = std::string(contract::Name(kind)) + " of " + parameter.name;
  }

  const contract::Case& spec_;
  const RealStart& start_;
  const std::vector<RealParameterState>& before_;
  const StepSight& after_;
  const std::vector<ParameterSpec> parameters_;
  Findings findings_;
  bool rests_ = false;  // the schedule gives every group a rate of 0
  int64_t num_trained_ = 0;
  int64_t num_visible_ = 0;
  double nearest_share_ = 0;
  std::string nearest_;
  bool norm_is_large_ = false;
  std::string large_;  // what fp32 may not hold of this step, in words
};

void CheckUnchanged(TensorKind kind, const std::string& tensor, const std::vector<float>& before, DType storage,
                    const std::vector<double>& after, Findings& findings) {
  findings.Count(static_cast<int64_t>(after.size()));
  for (size_t i = 0; i < after.size(); ++i) {
    const double expected = kind == TensorKind::kWeight ? RoundToStorage(before[i], storage) : before[i];
    if (SameNumber(after[i], expected)) continue;
    findings.Add(std::string(contract::Name(kind)), tensor,
                 "element " + std::to_string(i) + " is " + ExactText(after[i]) + " after a skipped step, " +
                     ExactText(expected) + " before it");
    return;
  }
}

}  // namespace

RealResult CheckUpdate(const contract::Case& spec, const RealStart& before, const StepSight& after) {
  return UpdateCheck(spec, before, after).Run();
}

reports::CheckRecord CheckClipped(const contract::RunConfig& config, std::span<const contract::NormHistory> before,
                                  std::span<const StepSight> after) {
  for (size_t i = 0; i < after.size(); ++i) {
    const double threshold = HistoryThreshold(config.adaptive_clipping, before[i]);
    // Where rounding could decide it, it would not show.
    const Clipping clipping = ClippingOf(threshold, after[i].real.gradient_norm);
    if (clipping.factor < 1 - 2 * clipping.relative_bound) return {"update", CheckOutcome::kPass, 1, ""};
  }
  return {"update", CheckOutcome::kVacuous, 0,
          "none of " + std::to_string(after.size()) + " steps is clipped by its history: no clipping would not show"};
}

RealResult CheckSkipped(const contract::Case& spec, const RealStart& start, const StepSight& after) {
  const std::vector<RealParameterState>& before = start.state;
  const std::vector<ParameterSpec> parameters = contract::Parameters(spec.model);
  Findings findings("skip", after.step);
  if (!CheckShapes(spec, parameters, before, after, findings)) return findings.Result("");
  findings.Count(2);
  const bool finite = GradientIsFinite(after);
  if (!after.real.skipped) findings.Add("skipped", "", "the step was not skipped");
  if (std::isfinite(after.real.gradient_norm)) {
    findings.Add("gradient_norm", "",
                 "is " + TraceText(after.real.gradient_norm) + "; that of a skipped step is not finite");
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto unchanged = [&](TensorKind kind, const std::vector<float>& values) {
      CheckUnchanged(kind, parameters[i].name, values, after.storage, after.of(kind)[i], findings);
    };
    unchanged(TensorKind::kMoment, before[i].moment);
    unchanged(TensorKind::kSecondMoment, before[i].second_moment);
    unchanged(TensorKind::kMaster, before[i].master);
    unchanged(TensorKind::kWeight, before[i].master);
  }
  const bool remembers = contract::HasNormHistory(spec.config);
  findings.Count();
  if (after.real.norm_history != (remembers ? std::optional(start.norm_history) : std::nullopt)) {
    findings.Add("norm_history", "", "is not what it was before the skipped step");
  }
  CheckScalerIsReported(spec, after, findings);
  if (finite && after.real.skipped) findings.Add("skipped", "", "the step was skipped, though its gradient is finite");
  return findings.Result("");
}

}  // namespace plumbline::conformance
