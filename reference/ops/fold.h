// SPDX-License-Identifier: Apache-2.0
// fold(x; b) and its slope, docs/exact-family.md, "Two maps": a triangle wave of period 4b that takes the place of
// norms, activations and softmax. The identity can be asked for instead, so that a test can leave folds out of a model.
#pragma once

#include "reference/ops/matrix.h"

namespace plumbline::reference {

// p = (x + b) mod 4b
// value(x) = p − b   where p ≤ 2b,   3b − p  otherwise;   in [−b, b]
// slope(x) = +1      where p < 2b,   −1      otherwise;   the kink p = 2b has slope −1
class Fold {
 public:
  // b > 0
  static Fold Triangle(double b);
  // value(x) = x, slope(x) = 1
  static Fold Identity();

  double Value(double x) const;
  double Slope(double x) const;

  // Elementwise; [rows, cols] → [rows, cols]
  Matrix Value(const Matrix& x) const;
  Matrix Slope(const Matrix& x) const;

  bool is_identity() const { return bound_ == 0; }
  double bound() const { return bound_; }  // b; 0 for the identity

 private:
  explicit Fold(double bound) : bound_(bound) {}
  double bound_;
};

}  // namespace plumbline::reference
