// SPDX-License-Identifier: Apache-2.0
// Central differences in fp64 and their comparison with a gradient that was derived by hand. For tests only.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>

#include "reference/ops/matrix.h"

namespace plumbline::reference {

// The step. With values and derivatives around 1 the truncation is about h² / 6 = 2e-11 and the rounding of the
// difference about 2^-53 / h = 1e-11.
inline constexpr double kDifferenceStep = 1e-5;

// The allowed distance: relative to the element, and, for elements near 0, relative to the largest one of the tensor.
inline constexpr double kDifferenceRelative = 1e-6;
inline constexpr double kDifferenceOfLargest = 1e-8;

// (f(x + h e_i) − f(x − h e_i)) / 2h
inline double CentralDifference(const std::function<double(const Matrix&)>& f, const Matrix& x, int64_t i) {
  Matrix above = x;
  Matrix below = x;
  above[i] += kDifferenceStep;
  below[i] -= kDifferenceStep;
  return (f(above) - f(below)) / (above[i] - below[i]);
}

inline double LargestMagnitude(const Matrix& x) {
  double largest = 0;
  for (int64_t i = 0; i < x.numel(); ++i) largest = std::max(largest, std::abs(x[i]));
  return largest;
}

inline void ExpectDerivative(double by_hand, double numeric, double largest, int64_t i) {
  EXPECT_NEAR(by_hand, numeric, kDifferenceRelative * std::abs(numeric) + kDifferenceOfLargest * largest)
      << "element " << i;
}

// Every element of the gradient of f at x, which must not be 0 everywhere.
inline void ExpectGradient(const Matrix& by_hand, const std::function<double(const Matrix&)>& f, const Matrix& x) {
  ASSERT_TRUE(by_hand.SameShape(x));
  const double largest = LargestMagnitude(by_hand);
  ASSERT_GT(largest, 0);
  for (int64_t i = 0; i < x.numel(); ++i) ExpectDerivative(by_hand[i], CentralDifference(f, x, i), largest, i);
}

}  // namespace plumbline::reference
