// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/clipping_formula.h"

#include <algorithm>
#include <cmath>

#include "conformance/contract/error.h"

namespace plumbline::conformance {
namespace {

using contract::UnitShape;

constexpr double kUnit = kFp32Rounding;
constexpr double kWideUnit = 0x1p-53;         // of fp64, in which histories are kept
constexpr double kSecondOrder = 1 + 0x1p-16;  // products of two roundings, of which there are fewer than 2^7

}  // namespace

Clipping ClippingOf(double threshold, double norm) {
  // The threshold, the norm and epsilon in fp32, the sum, the quotient, the product with g.
  constexpr double kRoundings = 6;
  constexpr double kEpsilon = 1e-6;
  if (!(threshold > 0)) return {};
  const double factor = threshold / (norm + kEpsilon);
  if (factor >= 1 + kRoundings * kUnit) return {};
  return {std::min(factor, 1.0), kRoundings * kUnit};
}

double NormBound(int64_t numel) {
  // Each square and each of numel - 1 sums one rounding, at most, and half of it in the root; then the root and fp32.
  return (static_cast<double>(numel) / 2 + 3) * kUnit * kSecondOrder;
}

int64_t UnitOf(const contract::ParameterSpec& parameter, int64_t index) {
  switch (parameter.units) {
    case UnitShape::kWhole:
      return 0;
    case UnitShape::kRows:
      return index / parameter.cols;
    case UnitShape::kColumns:
      return index % parameter.cols;
  }
  contract::Fail(contract::ErrorCode::kInternal, "a shape of units without a rule");
}

std::vector<Clipping> UnitClippings(const contract::ParameterSpec& parameter, const contract::AdaptiveClipping& rule,
                                    std::span<const double> gradient, std::span<const float> master) {
  contract::Check(gradient.size() == master.size(), "a gradient is as large as its weights");
  std::vector<double> gradient_squares(static_cast<size_t>(parameter.num_units()), 0);
  std::vector<double> master_squares(gradient_squares.size(), 0);
  for (size_t i = 0; i < gradient.size(); ++i) {
    const auto unit = static_cast<size_t>(UnitOf(parameter, static_cast<int64_t>(i)));
    gradient_squares[unit] += gradient[i] * gradient[i];
    master_squares[unit] += static_cast<double>(master[i]) * master[i];
  }
  // Both norms; the ratio, epsilon and their product with the norm, the quotient, the product with g.
  constexpr double kRoundings = 5;
  const double bound = 2 * NormBound(parameter.numel() / parameter.num_units()) + kRoundings * kUnit * kSecondOrder;
  std::vector<Clipping> clippings;
  for (size_t unit = 0; unit < gradient_squares.size(); ++unit) {
    const double allowed = rule.ratio * std::max(std::sqrt(master_squares[unit]), rule.eps);
    const double norm = std::sqrt(gradient_squares[unit]);
    const bool is_clipped = norm > 0 && allowed / norm < 1 + bound;
    clippings.push_back(is_clipped ? Clipping{std::min(1.0, allowed / norm), bound} : Clipping{});
  }
  return clippings;
}

double HistoryThreshold(const contract::AdaptiveClipping& rule, const contract::NormHistory& before) {
  if (before.count < rule.warmup_steps) return 0;
  return before.mean + rule.deviations * std::sqrt(before.variance);
}

BoundedHistory NextHistory(const contract::AdaptiveClipping& rule, const contract::NormHistory& before, double norm) {
  const bool warms_up = before.count < rule.warmup_steps;
  const double x = warms_up ? norm : std::min(norm, HistoryThreshold(rule, before));
  const double share = warms_up ? 1 / (static_cast<double>(before.count) + 1) : 1 - rule.decay;  // of the new norm
  const double kept = 1 - share;
  const double distance = x - before.mean;
  BoundedHistory after;
  after.mean.value = before.mean + share * distance;
  const double rest = x - after.mean.value;
  // Welford's (x - old mean)(x - new mean) / (n + 1), or the square of the second.
  after.variance.value = kept * before.variance + share * rest * (warms_up ? distance : rest);
  // All of it rounds in fp64, each term less than ten times: x (two products, a root and a sum where it is the
  // threshold), then the mean, then the variance. The norm itself is the reported one.
  constexpr double kWideRoundings = 10;
  const double sizes = std::abs(x) + std::abs(before.mean);
  after.mean.bound = kWideRoundings * kWideUnit * sizes;
  after.variance.bound = 2 * share * (std::abs(distance) + std::abs(rest)) * after.mean.bound +
                         kWideRoundings * kWideUnit * (before.variance + sizes * sizes * share);
  return after;
}

}  // namespace plumbline::conformance
