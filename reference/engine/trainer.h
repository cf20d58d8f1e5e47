// SPDX-License-Identifier: Apache-2.0
// Trains one case step by step: forward and backward over the global batch, the gradient's integrity, the optimizer,
// and what the certificate wants to know. Writes no file.
//   Trainer trainer(data);
//   for (step …) { trainer.Forward(step); trainer.Backward(); trainer.CheckGradient(); trainer.Update(); … }
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/contract/case_file.h"
#include "conformance/contract/trace.h"
#include "reference/certificate/liveness.h"
#include "reference/certificate/recorder.h"
#include "reference/engine/perturbation.h"
#include "reference/model/exact_model.h"
#include "reference/model/model_tensors.h"
#include "reference/ops/matrix.h"

namespace plumbline::reference {

// One matrix for each parameter, in canonical order.
using Tensors = std::vector<Matrix>;

class Trainer {
 public:
  explicit Trainer(const contract::CaseData& data);

  // Steps count from 0 and follow each other. Errors: InvalidArgument if no token of the step has weight.
  void Forward(int64_t step);
  void Backward();

  // The complete gradient, integer by integer. Errors: Internal, naming tensor, element, step and value.
  void CheckGradient() const;

  // The optimizer's step, and the working weights of the next one.
  void Update();

  // Of the last step. gradient(): D, what the optimizer consumed; the others are after the update.
  double loss() const { return tape_.loss.loss; }
  int64_t num_weighted_tokens() const { return tape_.loss.num_weighted_tokens; }
  const Tensors& gradient() const { return gradient_; }
  const Tensors& moment() const { return moment_; }  // empty with ModularSGD
  const Tensors& master() const { return master_; }
  const Tensors& weight() const { return weight_; }

  // Over all steps so far.
  contract::Certificate Certificate() const { return {recorder_.quantities(), liveness_.Means()}; }

 private:
  StepContext Context() { return {data_.spec.model.exact(), folds_, data_.spec.seed, step_, recorder_}; }
  void UpdateTensor(size_t tensor, double t);

  const contract::CaseData data_;
  const Folds folds_;
  const Perturber perturber_;
  Recorder recorder_;
  Liveness liveness_;

  int64_t step_ = 0;
  StepBatch batch_;
  ModelTensors<Matrix> model_;  // the working weights of the step, by letter
  ModelTape tape_;
  Tensors gradient_, moment_, master_, weight_;
};

}  // namespace plumbline::reference
