// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/quantiles.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace plumbline::conformance {
namespace {

// From brackets as wide as those below to a relative error of about 1e-12.
constexpr int kBisections = 60;

// The x in [low, high] where the decreasing `value` falls below `target`.
template <typename Function>
double SolveDecreasing(double low, double high, double target, Function value) {
  for (int i = 0; i < kBisections; ++i) {
    const double middle = low + (high - low) / 2;
    (value(middle) > target ? low : high) = middle;
  }
  return high;
}

// Continued fraction of the incomplete beta function, evaluated from the front (Lentz 1976; the fraction is in
// Abramowitz, Stegun 26.5.8). Converges fast for x < (a + 1) / (a + b + 2).
double BetaFraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  constexpr double kConverged = 1e-14;
  constexpr int kMaxTerms = 100'000;
  const auto away_from_zero = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
  double c = 1;
  double d = 1 / away_from_zero(1 - (a + b) * x / (a + 1));
  double fraction = d;
  for (int m = 1; m < kMaxTerms; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away_from_zero(1 + even * d);
    c = away_from_zero(1 + even / c);
    fraction *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away_from_zero(1 + odd * d);
    c = away_from_zero(1 + odd / c);
    const double factor = d * c;
    fraction *= factor;
    if (std::abs(factor - 1) < kConverged) break;
  }
  return fraction;
}

// I_x(a, b); y is 1 - x, given apart so that tails keep their digits; log_scale is -ln B(a, b).
double RegularizedBeta(double a, double b, double x, double y, double log_scale) {
  if (x <= 0) return 0;
  if (y <= 0) return 1;
  const double log_front = log_scale + a * std::log(x) + b * std::log(y);
  if (x < (a + 1) / (a + b + 2)) return std::exp(log_front) * BetaFraction(a, b, x) / a;
  return 1 - std::exp(log_front) * BetaFraction(b, a, y) / b;
}

// Recurrence up to 10, then the asymptotic series (Abramowitz, Stegun 6.4.12).
double Trigamma(double x) {
  double value = 0;
  for (; x < 10; x += 1) value += 1 / (x * x);
  const double r = 1 / (x * x);
  return value + 1 / x + r / 2 + r / x * (1.0 / 6 - r * (1.0 / 30 - r * (1.0 / 42 - r / 30)));
}

}  // namespace

double NormalUpperQuantile(double tail) {
  constexpr double kFarAway = 40;
  return SolveDecreasing(0, kFarAway, tail, [](double z) { return std::erfc(z / std::numbers::sqrt2) / 2; });
}

double FisherUpperQuantile(double numerator, double denominator, double tail) {
  // P(F > f) = I_w(denominator / 2, numerator / 2) with w = denominator / (denominator + numerator f).
  constexpr double kMaxLog = 700;
  const double a = denominator / 2;
  const double b = numerator / 2;
  const double log_scale = std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b);
  const double log_f = SolveDecreasing(-kMaxLog, kMaxLog, tail, [&](double candidate) {
    const double scaled = numerator * std::exp(candidate);
    const double w = denominator / (denominator + scaled);
    const double rest = scaled / (denominator + scaled);
    return RegularizedBeta(a, b, w, std::isfinite(scaled) ? rest : 1, log_scale);
  });
  return std::exp(log_f);
}

double LogSpreadOfDegrees(double degrees) { return Trigamma(degrees / 2) / 4; }

double DegreesOfLogSpread(double variance) {
  if (!(variance > 0)) return std::numeric_limits<double>::infinity();
  constexpr double kLeast = -10;  // logarithms
  constexpr double kMost = 30;
  return std::exp(SolveDecreasing(kLeast, kMost, variance,
                                  [](double log_degrees) { return LogSpreadOfDegrees(std::exp(log_degrees)); }));
}

double ChiSquaredLowerQuantile(double degrees, double tail) {
  const double spread = 2 / (9 * degrees);
  const double root = 1 - spread - NormalUpperQuantile(tail) * std::sqrt(spread);
  return degrees * std::pow(std::max(root, 0.0), 3);
}

}  // namespace plumbline::conformance
