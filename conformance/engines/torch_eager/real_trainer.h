// SPDX-License-Identifier: Apache-2.0
// Trains a case of a real family with LibTorch: the seam behind which all of LibTorch stays. One process, one thread;
// micro-batches one after the other. It neither reads cases nor writes traces (real_step.h). Calls per step: Forward
// and Backward for each micro-batch, then Update.
#pragma once

#include <cstdint>
#include <memory>

#include "conformance/contract/case_file.h"
#include "conformance/contract/tensor_file.h"
#include "conformance/contract/trace.h"

namespace plumbline::conformance::torch_eager {

class RealTrainer {
 public:
  // Weights and activations have the config's storage type, gradients, master weights and moments fp32. Storage F64,
  // which no case can ask for, makes all of it fp64, for tests against finite differences. Keeps a reference to `data`.
  explicit RealTrainer(const contract::CaseData& data);
  ~RealTrainer();
  RealTrainer(const RealTrainer&) = delete;
  RealTrainer& operator=(const RealTrainer&) = delete;

  // Number of tokens of the global batch that have a loss weight.
  int64_t NumTokens(int64_t step) const;

  // The share of samples micro_batch * m ... + m - 1 in the loss of the global batch. InvalidArgument if the step
  // weighs no token.
  double Forward(int64_t step, int64_t micro_batch);
  // Adds the gradients of the last Forward, which are those of the scaled loss; those of micro-batch 0 begin a new sum,
  // and after the last micro-batch's the sum is divided by the scale.
  void Backward();
  // Norm, clipping, update; skipped if a gradient is not finite. Then the loss scale of the next step.
  contract::RealStep Update(int64_t step);

  // Row-major values of parameter `index` in their storage type, named after the parameter; no elements where there is
  // no such value. The gradient is that before clipping.
  contract::HostTensor Values(contract::TensorKind kind, size_t index) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace plumbline::conformance::torch_eager
