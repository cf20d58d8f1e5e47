// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/update_formula.h"

#include <fnmatch.h>

#include <algorithm>
#include <cmath>

#include "conformance/contract/error.h"

namespace plumbline::conformance {
namespace {

using contract::OptimizerKind;

constexpr double kUnit = kFp32Rounding;
constexpr double kSmallest = 0x1p-126;        // what a kernel that flushes subnormal numbers loses
constexpr double kSecondOrder = 1 + 0x1p-16;  // products of two roundings, of which there are fewer than 2^7

Bounded Make(double value, double units, double extra = 0) {
  return {value, (units * kUnit + extra) * kSecondOrder + 2 * kSmallest};
}

// beta^t and 1 - beta^t, the latter without cancellation.
struct Correction {
  double value = 1;           // 1 - beta^t
  double relative_bound = 0;  // beta, its power by t products or by powf (2 ulp), the difference
};

// `beta_units` are the roundings that beta came with: one for a number of the config in fp32.
Correction CorrectionOf(double beta, double beta_units, int64_t t) {
  if (beta == 0) return {1, kUnit};
  const auto count = static_cast<double>(t);
  const double power = std::pow(beta, count);
  const double value = -std::expm1(count * std::log(beta));
  return {value, (power * ((beta_units + 1) * count + 2) + value) * kUnit / value};
}

// What a moment's exponential average loses: beta * old + (1 - beta) * fresh, or old + (1 - beta) * (fresh - old), with
// beta in fp64 or fp32. `beta_units` are the roundings that beta came with.
Bounded Average(double beta, double beta_units, double old, const Bounded& fresh) {
  const double value = beta * old + (1 - beta) * fresh.value;
  const double sizes = std::abs(old) + std::abs(fresh.value);
  const double units = std::max(1.0, beta * beta_units) * sizes  // of beta, and of 1 - beta made from it
                       + beta * std::abs(old)                    // the product
                       + 2 * (1 - beta) * sizes                  // the difference and the other product
                       + std::abs(value);                        // the sum
  return Make(value, units, (1 - beta) * fresh.bound);
}

double Clipped(const UpdateRule& rule, const UpdateInput& before) { return rule.clipping.factor * before.gradient; }

// The gradient that the optimizer is given.
Bounded ClippedGradient(const UpdateRule& rule, const UpdateInput& before) {
  const double clipped = Clipped(rule, before);
  return Make(clipped, 0, rule.clipping.relative_bound * std::abs(clipped));
}

// g + lambda p of SGD and of Adam.
Bounded DecayedGradient(const UpdateRule& rule, const UpdateInput& before) {
  const double clipped = Clipped(rule, before);
  const double decay = rule.params.weight_decay * before.master;
  const double value = clipped + decay;
  return Make(value, 2 * std::abs(decay) + std::abs(value), rule.clipping.relative_bound * std::abs(clipped));
}

Bounded GradientOf(const UpdateRule& rule, const UpdateInput& before) {
  const bool decays = rule.optimizer == OptimizerKind::kSgd || rule.optimizer == OptimizerKind::kAdam;
  return decays ? DecayedGradient(rule, before) : ClippedGradient(rule, before);
}

Bounded Squared(const Bounded& number) {
  const double square = number.value * number.value;
  return {square, 2 * std::abs(number.value) * number.bound + number.bound * number.bound + 2 * kUnit * square};
}

// m / (1 - beta1^t) over sqrt(v / (1 - beta2^t)) + epsilon, of moments as they are stored. Its bound is relative to it.
struct AdamQuotient {
  double value = 0;
  double relative_bound = 0;
};

AdamQuotient QuotientOf(const UpdateRule& rule, double moment, double second_moment) {
  const contract::OptimizerParams& params = rule.params;
  const Correction first = CorrectionOf(params.beta1, rule.beta1_units, rule.t);
  const Correction second = CorrectionOf(params.beta2, 1, rule.t);
  const double root = std::sqrt(second_moment / second.value);
  // Roundings of the root: v in a register (half), sqrt, sqrt of the correction, the quotient; then epsilon and the
  // sum.
  const double root_bound = root * (3.5 * kUnit + second.relative_bound / 2);
  const double denominator = root + params.eps;
  const double denominator_bound = root_bound + (params.eps + denominator) * kUnit;
  // m in a register, the quotient by the correction, the quotient by the denominator.
  return {moment / first.value / denominator,
          3 * kUnit + first.relative_bound + denominator_bound / (denominator - denominator_bound)};
}

// p - lr lambda p - step, or p (1 - lr lambda) - step; step_bound is absolute.
Bounded Decoupled(const UpdateRule& rule, const UpdateInput& before, double step, double step_bound) {
  const contract::OptimizerParams& params = rule.params;
  const double decay = params.lr * params.weight_decay * before.master;
  const double value = before.master - decay - step;
  double units = std::abs(value) + 4 * std::abs(decay) + 2 * std::abs(step);
  if (params.weight_decay > 0) units += 2 * std::abs(before.master);  // 1 - lr lambda, and the product with it
  return Make(value, units, step_bound);
}

Bounded NextMasterAdamW(const UpdateRule& rule, const UpdateInput& before, double moment, double second_moment) {
  const AdamQuotient quotient = QuotientOf(rule, moment, second_moment);
  const double step = rule.params.lr * quotient.value;
  // lr, and the product with it.
  return Decoupled(rule, before, step, (quotient.relative_bound + 2 * kUnit) * std::abs(step));
}

Bounded NextMasterAdam(UpdateRule rule, const UpdateInput& before, double moment, double second_moment) {
  rule.params.weight_decay = 0;  // it is in the gradient
  return NextMasterAdamW(rule, before, moment, second_moment);
}

Bounded NextMasterLamb(const UpdateRule& rule, const UpdateInput& before, double moment, double second_moment) {
  const Bounded direction = LambDirection(rule, before, moment, second_moment);
  const double size = rule.params.lr * rule.ratio.value;
  const double step = size * direction.value;
  const double value = before.master - step;
  // lr, its product with the ratio, that with the direction.
  return Make(
      value, std::abs(value) + 3 * std::abs(step),
      size * direction.bound + rule.params.lr * rule.ratio.bound * (std::abs(direction.value) + direction.bound));
}

// Where the sign's argument is within rounding of 0, any of -1, 0 and 1 is right.
Bounded NextMasterLion(const UpdateRule& rule, const UpdateInput& before) {
  const Bounded gradient = ClippedGradient(rule, before);
  const Bounded argument = Average(rule.params.beta1, rule.beta1_units, before.moment, gradient);
  const bool is_zero = before.moment == 0 && gradient.value == 0;
  const bool is_sure = is_zero || std::abs(argument.value) > argument.bound;
  const double sign = is_zero || !is_sure ? 0 : std::copysign(1.0, argument.value);
  const double lr = rule.params.lr;
  return Decoupled(rule, before, lr * sign, is_sure ? 0 : lr * (1 + 2 * kUnit));
}

Bounded NextMasterSgd(const UpdateRule& rule, const UpdateInput& before, double moment) {
  const double lr = rule.params.lr;
  const Bounded gradient = DecayedGradient(rule, before);
  const bool has_moment = rule.params.momentum > 0;
  Bounded direction = has_moment ? Bounded{moment, 0} : gradient;
  if (rule.params.nesterov) {
    const double ahead = rule.params.momentum * moment;
    // b in a register, mu, the product, the sum.
    direction = Make(gradient.value + ahead, 3 * std::abs(ahead) + std::abs(gradient.value + ahead), gradient.bound);
  }
  const double step = lr * direction.value;
  const double value = before.master - step;
  // What is multiplied in a register, lr, the product.
  double units = std::abs(value) + 3 * std::abs(step);
  // p (1 - lr lambda) - lr g, which is the same without momentum.
  if (!has_moment && rule.params.weight_decay > 0) units += 2 * std::abs(before.master);
  return Make(value, units, lr * direction.bound);
}

}  // namespace

size_t GroupOf(const contract::RunConfig& config, const std::string& parameter) {
  for (size_t i = 0; i < config.groups.size(); ++i) {
    if (fnmatch(config.groups[i].match.c_str(), parameter.c_str(), 0) == 0) return i + 1;
  }
  return 0;
}

double WeightDecayOf(const contract::RunConfig& config, size_t group) {
  return group == 0 ? config.params.weight_decay
                    : config.groups.at(group - 1).weight_decay.value_or(config.params.weight_decay);
}

bool IsExempt(const contract::RunConfig& config, size_t group) {
  return group > 0 && !config.groups.at(group - 1).clip;
}

Bounded LambDirection(const UpdateRule& rule, const UpdateInput& before, double moment, double second_moment) {
  const AdamQuotient quotient = QuotientOf(rule, moment, second_moment);
  const double decay = rule.params.weight_decay * before.master;
  const double value = quotient.value + decay;
  return Make(value, 2 * std::abs(decay) + std::abs(value), quotient.relative_bound * std::abs(quotient.value));
}

Bounded LambRatio(const contract::OptimizerParams& params, std::span<const float> master,
                  std::span<const Bounded> directions) {
  double weights = 0, updates = 0, errors = 0;
  for (float value : master) weights += static_cast<double>(value) * value;
  for (const Bounded& direction : directions) {
    updates += direction.value * direction.value;
    errors += direction.bound * direction.bound;
  }
  if (weights == 0 || updates == 0) return {1, 0};
  const double ratio = std::sqrt(weights / updates);
  // Both norms, the limits in fp32 and the quotient; and the directions' own errors, of which the norm sees at most
  // their norm.
  const double relative = 2 * NormBound(static_cast<int64_t>(master.size())) + 2 * kUnit + std::sqrt(errors / updates);
  return {std::clamp(ratio, params.min_coeff, params.max_coeff), relative * ratio * kSecondOrder};
}

Bounded NextMoment(const UpdateRule& rule, const UpdateInput& before) {
  const Bounded gradient = GradientOf(rule, before);
  const contract::OptimizerParams& params = rule.params;
  if (rule.optimizer == OptimizerKind::kLion) return Average(params.beta2, 1, before.moment, gradient);
  if (rule.optimizer != OptimizerKind::kSgd) return Average(params.beta1, rule.beta1_units, before.moment, gradient);
  if (rule.t == 1) return gradient;
  const double kept = params.momentum * before.moment;
  const double value = kept + gradient.value;
  return Make(value, 2 * std::abs(kept) + std::abs(value), gradient.bound);
}

Bounded NextSecondMoment(const UpdateRule& rule, const UpdateInput& before) {
  return Average(rule.params.beta2, 1, before.second_moment, Squared(GradientOf(rule, before)));
}

Bounded NextMaster(const UpdateRule& rule, const UpdateInput& before, double moment, double second_moment) {
  if (rule.params.lr == 0) return {before.master, 0};  // products with 0, and a sum with 0: nothing rounds
  switch (rule.optimizer) {
    case OptimizerKind::kAdamW:
      return NextMasterAdamW(rule, before, moment, second_moment);
    case OptimizerKind::kAdam:
      return NextMasterAdam(rule, before, moment, second_moment);
    case OptimizerKind::kLamb:
      return NextMasterLamb(rule, before, moment, second_moment);
    case OptimizerKind::kLion:
      return NextMasterLion(rule, before);
    case OptimizerKind::kSgd:
      return NextMasterSgd(rule, before, moment);
    case OptimizerKind::kModularMomentum:
    case OptimizerKind::kModularSgd:
      break;
  }
  contract::Fail(contract::ErrorCode::kInternal, "an optimizer without a formula");
}

}  // namespace plumbline::conformance
