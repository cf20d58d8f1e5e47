// SPDX-License-Identifier: Apache-2.0
// Implementation of padding.h.
#include "conformance/engines/torch_eager/padding.h"

namespace plumbline::conformance::torch_eager {

std::vector<int32_t> WithFilledPadding(const contract::Batches& batches, const std::vector<int32_t>& values) {
  std::vector<int32_t> filled = values;
  for (int64_t step = batches.first_step; step < batches.first_step + batches.steps; ++step) {
    for (int64_t sample = 0; sample < batches.batch; ++sample) {
      const int64_t first = batches.Index(step, sample, 0);
      for (int64_t t = batches.Length(step, sample); t < batches.positions; ++t) filled[first + t] = values[first];
    }
  }
  return filled;
}

}  // namespace plumbline::conformance::torch_eager
