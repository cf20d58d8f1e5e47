// SPDX-License-Identifier: Apache-2.0
// Implements rms_norm.h.
#include "reference/ops/rms_norm.h"

#include <cmath>

#include "conformance/contract/error.h"

namespace plumbline::reference {
namespace {

// The mean of a ⊙ b over a row.
double RowMeanOfProduct(const Matrix& a, const Matrix& b, int64_t row) {
  double sum = 0;
  for (int64_t c = 0; c < a.cols(); ++c) sum += a(row, c) * b(row, c);
  return sum / static_cast<double>(a.cols());
}

}  // namespace

RmsNormForwardResult RmsNormForward(const Matrix& x, const Matrix& weight, double epsilon) {
  contract::Check(x.cols() > 0 && epsilon > 0, "RMS norm: channels, and a positive epsilon");
  contract::Check(weight.rows() == 1 && weight.cols() == x.cols(), "RMS norm: a weight for each channel");
  RmsNormForwardResult result{Matrix(x.rows(), x.cols()), Matrix(x.rows(), x.cols()), Matrix(x.rows(), 1)};
  for (int64_t row = 0; row < x.rows(); ++row) {
    const double r = 1 / std::sqrt(RowMeanOfProduct(x, x, row) + epsilon);
    result.inverse_root(row, 0) = r;
    for (int64_t c = 0; c < x.cols(); ++c) {
      result.normalized(row, c) = x(row, c) * r;
      result.y(row, c) = result.normalized(row, c) * weight(0, c);
    }
  }
  return result;
}

RmsNormBackwardResult RmsNormBackward(const Matrix& dy, const Matrix& weight, const RmsNormForwardResult& forward) {
  const Matrix& normalized = forward.normalized;
  contract::Check(dy.SameShape(normalized) && weight.cols() == dy.cols(), "RMS norm: dy has the shape of y");
  RmsNormBackwardResult result{Matrix(dy.rows(), dy.cols()), Matrix(1, dy.cols())};
  Matrix dnormalized(dy.rows(), dy.cols());
  for (int64_t row = 0; row < dy.rows(); ++row) {
    for (int64_t c = 0; c < dy.cols(); ++c) {
      result.dweight(0, c) += dy(row, c) * normalized(row, c);
      dnormalized(row, c) = dy(row, c) * weight(0, c);
    }
  }
  for (int64_t row = 0; row < dy.rows(); ++row) {
    const double mean_product = RowMeanOfProduct(dnormalized, normalized, row);
    for (int64_t c = 0; c < dy.cols(); ++c)
      result.dx(row, c) = forward.inverse_root(row, 0) * (dnormalized(row, c) - normalized(row, c) * mean_product);
  }
  return result;
}

}  // namespace plumbline::reference
