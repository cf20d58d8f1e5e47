// SPDX-License-Identifier: Apache-2.0
// A product with a bias, y = x W + b, forward and backward. It keeps nothing: the caller's x must be the same in both.
// Source: docs/semantics.md, "Family gpt2".
#pragma once

#include <cstdint>
#include <span>

#include "optimized/model/parameter.h"

namespace plumbline::optimized {

template <typename T>
class Linear {
 public:
  // weight [in, out], bias [out].
  Linear(int64_t in, int64_t out, const Parameter<T>& weight, const Parameter<T>& bias, Backend& backend)
      : in_(in), out_(out), weight_(weight), bias_(bias), backend_(backend) {}

  // product: scratch of at least rows * out elements; the product is rounded to T with the bias in it, once.
  void Forward(int64_t rows, std::span<T> x, std::span<float> product, std::span<T> y) const;

  // Writes dx = dy W', and reports the gradients of bias and weight, in this order: reverse canonical.
  void Backward(const GradientWrites& writes, int64_t rows, std::span<T> x, std::span<T> dy, std::span<T> dx) const;

 private:
  int64_t in_, out_;
  Parameter<T> weight_, bias_;
  Backend& backend_;
};

}  // namespace plumbline::optimized
