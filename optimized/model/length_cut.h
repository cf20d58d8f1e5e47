// SPDX-License-Identifier: Apache-2.0
// Cuts a micro-batch to the longest of its samples, so that layers see dense rows of fewer positions and nothing of the
// padding behind them. Source: docs/semantics.md, "Family llama" (unequal_lengths).
#pragma once

#include <cstdint>
#include <vector>

#include "optimized/model/model.h"

namespace plumbline::optimized {

class LengthCut {
 public:
  // Of every micro-batch.
  LengthCut(int64_t samples, int64_t positions) : samples_(samples), positions_(positions) {}

  // The first longest() positions of each sample, valid until the next call; without lengths the micro-batch itself. In
  // a sample that is shorter, padding becomes the sample's first token, label 0 and weight 0: finite where the sample
  // is, and so multiplied by 0 without effect, whatever the padding was. Internal if lengths or spans do not fit.
  MicroBatch Cut(const MicroBatch& whole);

  // Of the last call.
  int64_t longest() const { return longest_; }

 private:
  void CutSample(const MicroBatch& whole, int64_t sample);

  int64_t samples_, positions_;
  int64_t longest_ = 0;
  std::vector<int32_t> tokens_, labels_, loss_weights_;  // [samples, longest]
};

}  // namespace plumbline::optimized
