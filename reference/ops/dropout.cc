// SPDX-License-Identifier: Apache-2.0
// Implements dropout.h.
#include "reference/ops/dropout.h"

#include "conformance/contract/error.h"

namespace plumbline::reference {

Matrix DropoutMask(uint64_t seed, contract::Site site, int64_t step, int64_t layer, int64_t tokens, int64_t width) {
  Matrix mask(tokens, width);
  for (int64_t n = 0; n < tokens; ++n) {
    for (int64_t c = 0; c < width; ++c) {
      const uint32_t word = contract::Draw(seed, site, step, layer, n * width + c);
      mask(n, c) = contract::KeepBit(word) ? 1 : 0;
    }
  }
  return mask;
}

Matrix Drop(const Matrix& y, const std::optional<Matrix>& mask) {
  if (!mask) return y;
  contract::Check(y.SameShape(*mask), "Drop: equal shapes");
  Matrix result(y.rows(), y.cols());
  for (int64_t i = 0; i < y.numel(); ++i) result[i] = 2 * (*mask)[i] * y[i];
  return result;
}

}  // namespace plumbline::reference
