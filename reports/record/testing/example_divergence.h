// SPDX-License-Identifier: Apache-2.0
// A divergence with a hypothesis that fits and one that does not.
#pragma once

#include "reports/record/record.h"

namespace plumbline::reports {

inline DivergenceRecord ExampleDivergence() {
  return {.step = 2,
          .quantity = "gradient",
          .tensor = "layers.1.mlp.down",
          .layer = 1,
          .ranks = {0, 3},
          .region = "row 1 of 5",
          .hypotheses = {{.name = "missing_rank", .says = "a share is missing", .residual = 0, .fits = true},
                         {.name = "other_factor", .says = "by 0.7", .residual = 0.25, .fits = false}},
          .residual_limit = 0.05,
          .undiagnosed = ""};
}

}  // namespace plumbline::reports
