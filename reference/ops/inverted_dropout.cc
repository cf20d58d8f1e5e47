// SPDX-License-Identifier: Apache-2.0
// Implements inverted_dropout.h.
#include "reference/ops/inverted_dropout.h"

#include "conformance/contract/error.h"

namespace plumbline::reference {

Matrix KeepMask(const DropoutSite& site, int64_t rows, int64_t cols, double p) {
  contract::Check(p > 0 && p < 1, "KeepMask: a probability above 0 and below 1");
  const uint32_t threshold = contract::DropThreshold(p);
  Matrix mask(rows, cols);
  for (int64_t i = 0; i < mask.numel(); ++i) {
    const uint32_t word = contract::Draw(site.seed, site.site, site.step, site.layer, site.first_element + i);
    mask[i] = word >= threshold ? 1 : 0;
  }
  return mask;
}

Matrix InvertedDrop(const Matrix& y, const std::optional<Matrix>& mask, double p) {
  if (!mask) return y;
  contract::Check(y.SameShape(*mask), "InvertedDrop: equal shapes");
  Matrix result(y.rows(), y.cols());
  for (int64_t i = 0; i < y.numel(); ++i) result[i] = (*mask)[i] * y[i] / (1 - p);
  return result;
}

}  // namespace plumbline::reference
