// SPDX-License-Identifier: Apache-2.0
// A model as the engine drives it: forward, loss, backward on one micro-batch, with gradients reported as they become
// ready. It knows no ranks, no shards and no optimizer: it announces which weights it is about to read, and finds them
// in a table.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "optimized/backend/backend.h"

namespace plumbline::optimized {

// Whole samples [first_sample, first_sample + samples) of the global batch. Each span but lengths is [samples,
// positions], row-major.
struct MicroBatch {
  int64_t step = 0;
  int64_t first_sample = 0;
  std::span<const int32_t> tokens;
  std::span<const int32_t> labels;
  std::span<const int32_t> loss_weights;
  std::span<const int32_t> lengths = {};  // [samples]: what is behind them is padding; empty: all positions are tokens
};

// The places of a model that read weights: an embedding, a layer, a head. A tied weight is in several units. One unit
// is in use at a time, in the order given here, which is the same for every micro-batch.
struct ModelOutline {
  std::vector<std::vector<int64_t>> units;  // canonical indices of the parameters that a unit reads
  std::vector<int64_t> forward;             // the units that Forward uses, in order
  std::vector<int64_t> backward;            // the units whose weights Backward reads, in order
};

// Told about every use of weights. Between the two calls the weights of the unit are in memory and do not change.
class UnitHooks {
 public:
  virtual ~UnitHooks() = default;
  virtual void BeforeUse(int64_t unit) = 0;
  virtual void AfterUse(int64_t unit) = 0;
};

// By canonical index of the parameter, dense row-major. The model keeps a reference to it and looks a weight's address
// up at each use: it is valid only while a unit that reads it is in use. Gradients' addresses are fixed for the life of
// the model.
struct ParameterMemory {
  std::vector<void*> weights;     // storage type
  std::vector<float*> gradients;  // F32
  UnitHooks* hooks = nullptr;     // none: all weights are always in memory

  void BeforeUse(int64_t unit) const {
    if (hooks != nullptr) hooks->BeforeUse(unit);
  }
  void AfterUse(int64_t unit) const {
    if (hooks != nullptr) hooks->AfterUse(unit);
  }
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
  // tokens. loss_scale, a power of two, is not in it, but in all gradients that Backward makes: where a type is too
  // narrow for one it is infinite or NaN.
  virtual double Loss(float inverse_tokens, float loss_scale) = 0;

  // After Loss. Of each parameter, by canonical index: kAssign overwrites whatever the gradient's memory holds,
  // kAccumulate adds to it. A frozen one has a mode that nobody reads.
  virtual void Backward(std::span<const WriteMode> modes, const GradientReady& ready) = 0;
};

}  // namespace plumbline::optimized
