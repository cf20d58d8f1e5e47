// SPDX-License-Identifier: Apache-2.0
// A model as the engine drives it: forward, loss, backward on one micro-batch, with gradients reported as they become
// ready. It knows no ranks, no shards and no optimizer: where weights and gradients lie is told to it once.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "optimized/backend/backend.h"

namespace plumbline::optimized {

// Whole samples [first_sample, first_sample + samples) of the global batch. Each span is [samples, positions],
// row-major.
struct MicroBatch {
  int64_t step = 0;
  int64_t first_sample = 0;
  std::span<const int32_t> tokens;
  std::span<const int32_t> labels;
  std::span<const int32_t> loss_weights;
};

// By canonical index of the parameter, dense row-major. Fixed for the life of the model; the contents change between
// calls.
struct ParameterMemory {
  std::vector<void*> weights;     // storage type
  std::vector<float*> gradients;  // F32
};

// Called in backward once for each parameter, in reverse canonical order, when this micro-batch's share of its gradient
// is complete in memory and backward will not touch it again.
using GradientReady = std::function<void(int64_t parameter)>;

class Model {
 public:
  virtual ~Model() = default;

  // The micro-batch's memory must live until Backward is over.
  virtual void Forward(const MicroBatch& micro_batch) = 0;

  // After Forward. This micro-batch's share of the loss of the global batch, which has 1 / inverse_tokens weighted
  // tokens.
  virtual double Loss(float inverse_tokens) = 0;

  // After Loss. kAssign overwrites whatever the gradients' memory holds; kAccumulate adds to it.
  virtual void Backward(WriteMode mode, const GradientReady& ready) = 0;
};

}  // namespace plumbline::optimized
