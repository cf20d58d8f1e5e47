// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/update_formula.h"

#include <fnmatch.h>

#include <algorithm>
#include <cmath>

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
// beta in fp64 or fp32. `beta_units` and `fresh_units` are the roundings that beta and `fresh` came with.
Bounded Average(double beta, double beta_units, double old, double fresh, double fresh_units) {
  const double value = beta * old + (1 - beta) * fresh;
  const double sizes = std::abs(old) + std::abs(fresh);
  const double units = std::max(1.0, beta * beta_units) * sizes  // of beta, and of 1 - beta made from it
                       + beta * std::abs(old)                    // the product
                       + 2 * (1 - beta) * sizes                  // the difference and the other product
                       + fresh_units * (1 - beta) * std::abs(fresh) + std::abs(value);  // the sum
  return Make(value, units);
}

double Clipped(const UpdateRule& rule, const UpdateInput& before) { return rule.clipping.factor * before.gradient; }

double ClippingUnits(const UpdateRule& rule) { return rule.clipping.relative_bound / kUnit; }

// SGD's g + lambda p.
Bounded DecayedGradient(const UpdateRule& rule, const UpdateInput& before) {
  const double clipped = Clipped(rule, before);
  const double decay = rule.params.weight_decay * before.master;
  const double value = clipped + decay;
  return Make(value, ClippingUnits(rule) * std::abs(clipped) + 2 * std::abs(decay) + std::abs(value));
}

Bounded NextMasterAdamW(const UpdateRule& rule, const UpdateInput& before, double moment, double second_moment) {
  const contract::OptimizerParams& params = rule.params;
  const Correction first = CorrectionOf(params.beta1, rule.beta1_units, rule.t);
  const Correction second = CorrectionOf(params.beta2, 1, rule.t);
  const double root = std::sqrt(second_moment / second.value);
  // Roundings of the root: v in a register (half), sqrt, sqrt of the correction, the quotient; then epsilon and the
  // sum.
  const double root_bound = root * (3.5 * kUnit + second.relative_bound / 2);
  const double denominator = root + params.eps;
  const double denominator_bound = root_bound + (params.eps + denominator) * kUnit;
  const double step = params.lr * (moment / first.value) / denominator;
  // m in a register, lr, the quotient by the correction, the product, the quotient by the denominator.
  const double relative = 5 * kUnit + first.relative_bound + denominator_bound / (denominator - denominator_bound);
  const double decay = params.lr * params.weight_decay * before.master;
  const double value = before.master - decay - step;
  double units = std::abs(value) + 4 * std::abs(decay) + 2 * std::abs(step);
  if (params.weight_decay > 0) units += 2 * std::abs(before.master);  // 1 - lr lambda, and the product with it
  return Make(value, units, relative * std::abs(step));
}

Bounded NextMasterSgd(const UpdateRule& rule, const UpdateInput& before, double moment) {
  const double lr = rule.params.lr;
  const Bounded gradient = DecayedGradient(rule, before);
  const bool has_moment = rule.params.momentum > 0;
  const double step = lr * (has_moment ? moment : gradient.value);
  const double value = before.master - step;
  // What is multiplied in a register, lr, the product.
  double units = std::abs(value) + 3 * std::abs(step);
  // p (1 - lr lambda) - lr g, which is the same without momentum.
  if (!has_moment && rule.params.weight_decay > 0) units += 2 * std::abs(before.master);
  return Make(value, units, has_moment ? 0 : lr * gradient.bound);
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

Clipping ClippingOf(double threshold, double norm) {
  // The threshold, the norm and epsilon in fp32, the sum, the quotient, the product with g.
  constexpr double kRoundings = 6;
  constexpr double kEpsilon = 1e-6;
  if (!(threshold > 0)) return {};
  const double factor = threshold / (norm + kEpsilon);
  if (factor >= 1 + kRoundings * kUnit) return {};
  return {std::min(factor, 1.0), kRoundings * kUnit};
}

Bounded NextMoment(const UpdateRule& rule, const UpdateInput& before) {
  if (rule.optimizer == OptimizerKind::kAdamW) {
    return Average(rule.params.beta1, rule.beta1_units, before.moment, Clipped(rule, before), ClippingUnits(rule));
  }
  const Bounded gradient = DecayedGradient(rule, before);
  if (rule.t == 1) return gradient;
  const double kept = rule.params.momentum * before.moment;
  const double value = kept + gradient.value;
  return Make(value, 2 * std::abs(kept) + std::abs(value), gradient.bound);
}

Bounded NextSecondMoment(const UpdateRule& rule, const UpdateInput& before) {
  const double clipped = Clipped(rule, before);
  return Average(rule.params.beta2, 1, before.second_moment, clipped * clipped, 2 * ClippingUnits(rule) + 2);
}

Bounded NextMaster(const UpdateRule& rule, const UpdateInput& before, double moment, double second_moment) {
  if (rule.params.lr == 0) return {before.master, 0};  // products with 0, and a sum with 0: nothing rounds
  return rule.optimizer == OptimizerKind::kAdamW ? NextMasterAdamW(rule, before, moment, second_moment)
                                                 : NextMasterSgd(rule, before, moment);
}

double NormBound(int64_t numel) {
  // Each square and each of numel - 1 sums one rounding, at most, and half of it in the root; then the root and fp32.
  return (static_cast<double>(numel) / 2 + 3) * kUnit * kSecondOrder;
}

}  // namespace plumbline::conformance
