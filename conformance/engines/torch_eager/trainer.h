// SPDX-License-Identifier: Apache-2.0
// Trains a case of family `exact` with LibTorch: the seam behind which all of LibTorch stays. One process, one thread,
// the whole global batch at once. It neither reads cases nor writes traces (run_case.h); calls per step: Forward,
// Backward, Update.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "conformance/contract/case_file.h"
#include "conformance/contract/trace.h"

namespace plumbline::conformance::torch_eager {

struct StepLoss {
  double loss = 0;
  int64_t tokens = 0;  // N, counted from the loss weights
};

class Trainer {
 public:
  // Storage (fp32, bf16 or fp16) is the config's; master weights and moments are int64, parameters and their gradients
  // fp32. Gradients are made of the loss times the config's scale, and divided by it before anybody sees them. Keeps a
  // reference to `data`.
  explicit Trainer(const contract::CaseData& data);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // InvalidArgument if the step weighs no token.
  StepLoss Forward(int64_t step);
  // InvalidArgument if a gradient is not an integer.
  void Backward();
  void Update();

  // Row-major values of parameter `index`; empty for the moment under ModularSGD. The gradient is that of the last
  // Backward.
  std::vector<int64_t> Values(contract::TensorKind kind, size_t index) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace plumbline::conformance::torch_eager
