// SPDX-License-Identifier: Apache-2.0
// The model of a real family as the trainer sees it: parameters in canonical order, a loss, and its gradient. What is
// between them is each family's own folder; what is done with the gradient is the trainer's.
//   const std::unique_ptr<RealModel> model = MakeRealModel(data.spec.model, data.spec.seed);
//   const double loss = model->Forward(step, weights, batch);
//   const Tensors gradient = model->Backward();
#pragma once

#include <cstdint>
#include <memory>

#include "conformance/contract/model_spec.h"
#include "reference/engine/trainer.h"
#include "reference/model/step_batch.h"

namespace plumbline::reference {

class RealModel {
 public:
  virtual ~RealModel() = default;

  // The loss of the global batch; the dropout's masks are those of the step. What the backward needs is kept.
  // Errors: InvalidArgument if no token has weight.
  virtual double Forward(int64_t step, const Tensors& weights, const StepBatch& batch) = 0;

  // Of the last forward, the complete gradient of each parameter, frozen ones too.
  virtual Tensors Backward() = 0;
};

// `spec` is of a real family and must outlive the model.
std::unique_ptr<RealModel> MakeRealModel(const contract::ModelSpec& spec, uint64_t seed);

}  // namespace plumbline::reference
