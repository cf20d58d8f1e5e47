// SPDX-License-Identifier: Apache-2.0
// Quantiles from which limits are made (docs/tolerance.md): of the normal distribution, of the ratio of two mean
// squares (Fisher, Snedecor), and the degrees of freedom that belong to a spread of logarithms. Accurate to about nine
// digits, which is far more than a limit needs; tails down to 1e-15. No data are looked at here.
#pragma once

namespace plumbline::conformance {

// z with P(N > z) = tail for a standard normal N; 0 < tail <= 1/2.
double NormalUpperQuantile(double tail);

// f with P(F > f) = tail, F the ratio of two independent chi-squared variables, each divided by its degrees of freedom
// (of the numerator, of the denominator), which are > 0 and need not be integers. 0 < tail < 1.
double FisherUpperQuantile(double numerator, double denominator, double tail);

// The variance of the logarithm of a chi variable: trigamma(degrees / 2) / 4, about 1 / (2 degrees).
double LogSpreadOfDegrees(double degrees);

// Its inverse; infinite for a variance of 0.
double DegreesOfLogSpread(double variance);

// The c with P(X < c) = tail for chi-squared X with that many degrees of freedom (Wilson, Hilferty 1931: good to a few
// percent for five or more; 0 where it is useless).
double ChiSquaredLowerQuantile(double degrees, double tail);

}  // namespace plumbline::conformance
