// SPDX-License-Identifier: Apache-2.0
// Working weights of frozen parameters: whole on every rank in every ZeRO stage, written once before the first step,
// never communicated. It has no master copies: nothing is ever computed from them.
#pragma once

#include <vector>

#include "optimized/engine/flat_buffer.h"
#include "optimized/engine/weight_slice.h"

namespace plumbline::optimized {

class FrozenWeights {
 public:
  // Writes the addresses of what it holds into the table.
  explicit FrozenWeights(const WeightInputs& inputs);

  std::vector<WeightSlice> Held() const;

 private:
  const FrozenPlan& plan_;
  const FlatBuffer whole_;
};

}  // namespace plumbline::optimized
