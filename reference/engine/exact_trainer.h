// SPDX-License-Identifier: Apache-2.0
// Trains a case of family exact: forward and backward over the global batch, the gradient's integrity, the optimizer,
// and what the certificate wants to know (docs/exact-family.md).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "conformance/contract/case_file.h"
#include "conformance/contract/trace.h"
#include "reference/certificate/liveness.h"
#include "reference/certificate/recorder.h"
#include "reference/engine/perturbation.h"
#include "reference/engine/trainer.h"
#include "reference/model/exact_model.h"
#include "reference/model/model_tensors.h"
#include "reference/model/step_batch.h"
#include "reference/ops/matrix.h"

namespace plumbline::reference {

class ExactTrainer : public Trainer {
 public:
  explicit ExactTrainer(const contract::CaseData& data);

  void Forward(int64_t step) override;
  void Backward() override;

  // The complete gradient, integer by integer. Errors: Internal, naming tensor, element, step and value.
  void CheckGradient() override;

  void Update() override;

  double loss() const override { return tape_.loss.loss; }
  int64_t num_weighted_tokens() const override { return tape_.loss.num_weighted_tokens; }
  std::optional<contract::RealStep> real() const override { return std::nullopt; }

  // kGradient: D, what the optimizer consumed. No moments with ModularSGD.
  const Tensors& Of(contract::TensorKind kind) const override;

  std::optional<contract::Certificate> Certificate() const override {
    return contract::Certificate{recorder_.quantities(), liveness_.Means()};
  }

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
  const Tensors none_;  // there is no second moment
};

}  // namespace plumbline::reference
