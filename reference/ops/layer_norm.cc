// SPDX-License-Identifier: Apache-2.0
// Implements layer_norm.h.
#include "reference/ops/layer_norm.h"

#include <cmath>

#include "conformance/contract/error.h"

namespace plumbline::reference {
namespace {

double RowMean(const Matrix& x, int64_t row) {
  double sum = 0;
  for (int64_t c = 0; c < x.cols(); ++c) sum += x(row, c);
  return sum / static_cast<double>(x.cols());
}

}  // namespace

LayerNormForwardResult LayerNormForward(const Matrix& x, const Matrix& weight, const Matrix& bias, double epsilon) {
  contract::Check(x.cols() > 0 && epsilon > 0, "layer norm: channels, and a positive epsilon");
  contract::Check(weight.rows() == 1 && weight.cols() == x.cols() && bias.SameShape(weight),
                  "layer norm: a weight and a bias for each channel");
  LayerNormForwardResult result{Matrix(x.rows(), x.cols()), Matrix(x.rows(), x.cols()), Matrix(x.rows(), 1)};
  for (int64_t r = 0; r < x.rows(); ++r) {
    const double mean = RowMean(x, r);
    double sum_squares = 0;
    for (int64_t c = 0; c < x.cols(); ++c) sum_squares += (x(r, c) - mean) * (x(r, c) - mean);
    const double variance = sum_squares / static_cast<double>(x.cols());
    const double rstd = 1 / std::sqrt(variance + epsilon);
    result.inverse_deviation(r, 0) = rstd;
    for (int64_t c = 0; c < x.cols(); ++c) {
      result.normalized(r, c) = (x(r, c) - mean) * rstd;
      result.y(r, c) = result.normalized(r, c) * weight(0, c) + bias(0, c);
    }
  }
  return result;
}

LayerNormBackwardResult LayerNormBackward(const Matrix& dy, const Matrix& weight,
                                          const LayerNormForwardResult& forward) {
  const Matrix& normalized = forward.normalized;
  contract::Check(dy.SameShape(normalized) && weight.cols() == dy.cols(), "layer norm: dy has the shape of y");
  LayerNormBackwardResult result{Matrix(dy.rows(), dy.cols()), Matrix(1, dy.cols()), Matrix(1, dy.cols())};
  Matrix dnormalized(dy.rows(), dy.cols());
  for (int64_t r = 0; r < dy.rows(); ++r) {
    for (int64_t c = 0; c < dy.cols(); ++c) {
      result.dbias(0, c) += dy(r, c);
      result.dweight(0, c) += dy(r, c) * normalized(r, c);
      dnormalized(r, c) = dy(r, c) * weight(0, c);
    }
  }
  const Matrix product = Hadamard(dnormalized, normalized);
  for (int64_t r = 0; r < dy.rows(); ++r) {
    const double mean = RowMean(dnormalized, r);
    const double mean_product = RowMean(product, r);
    for (int64_t c = 0; c < dy.cols(); ++c)
      result.dx(r, c) = forward.inverse_deviation(r, 0) * (dnormalized(r, c) - mean - normalized(r, c) * mean_product);
  }
  return result;
}

}  // namespace plumbline::reference
