// SPDX-License-Identifier: Apache-2.0
// A dense row-major matrix of doubles, the only tensor of the reference. Every op takes whole matrices and returns new
// ones: no views, no aliasing, nothing in place. Holds for all ops in this folder: values are double, loops run in one
// fixed order, so results repeat bit for bit; on integers below 2^53 nothing rounds. A wrong shape is an Internal
// error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace plumbline::reference {

class Matrix {
 public:
  Matrix() = default;
  Matrix(int64_t rows, int64_t cols) : rows_(rows), cols_(cols), values_(static_cast<size_t>(rows * cols), 0.0) {}
  Matrix(int64_t rows, int64_t cols, std::vector<double> values);

  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  int64_t numel() const { return rows_ * cols_; }

  double& operator()(int64_t row, int64_t col) { return values_[static_cast<size_t>(row * cols_ + col)]; }
  double operator()(int64_t row, int64_t col) const { return values_[static_cast<size_t>(row * cols_ + col)]; }

  // By row-major index.
  double& operator[](int64_t index) { return values_[static_cast<size_t>(index)]; }
  double operator[](int64_t index) const { return values_[static_cast<size_t>(index)]; }

  bool SameShape(const Matrix& other) const { return rows_ == other.rows_ && cols_ == other.cols_; }

  friend bool operator==(const Matrix&, const Matrix&) = default;

 private:
  int64_t rows_ = 0;
  int64_t cols_ = 0;
  std::vector<double> values_;
};

// result[c, r] = a[r, c].   a [rows, cols] → [cols, rows]
Matrix Transpose(const Matrix& a);

// result = a ⊙ b, elementwise.   a, b [rows, cols] → [rows, cols]
Matrix Hadamard(const Matrix& a, const Matrix& b);

}  // namespace plumbline::reference
