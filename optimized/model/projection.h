// SPDX-License-Identifier: Apache-2.0
// A product without a bias, y = x W, forward and backward. It keeps nothing: the caller's x must be the same in both.
// Source: docs/semantics.md, "Family llama".
#pragma once

#include <cstdint>
#include <span>

#include "optimized/model/arena.h"
#include "optimized/model/parameter.h"

namespace plumbline::optimized {

template <typename T>
class Projection {
 public:
  // weight [in, out].
  Projection(int64_t in, int64_t out, const Parameter<T>& weight, Backend& backend)
      : in_(in), out_(out), weight_(weight), backend_(backend) {}

  // x [rows, in], y [rows, out]. The spans may be longer.
  void Forward(int64_t rows, std::span<T> x, std::span<T> y) const;

  // dx = dy W', or dx += dy W' where several projections read x. U is T, or float, which alone can be added to.
  // Reports the gradient of the weight.
  template <typename U>
  void Backward(const GradientWrites& writes, int64_t rows, std::span<T> x, std::span<T> dy, std::span<U> dx,
                WriteMode dx_mode) const;

 private:
  int64_t in_, out_;
  Parameter<T> weight_;
  Backend& backend_;
};

}  // namespace plumbline::optimized
