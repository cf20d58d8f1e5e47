// SPDX-License-Identifier: Apache-2.0
// See lamb_ratio.h.
#include "optimized/optimizer/lamb_ratio.h"

#include <algorithm>

namespace plumbline::optimized {

double LambRatio(const contract::OptimizerParams& params, double master_norm, double direction_norm) {
  if (master_norm == 0 || direction_norm == 0) return 1;
  return std::clamp(master_norm / direction_norm, params.min_coeff, params.max_coeff);
}

}  // namespace plumbline::optimized
