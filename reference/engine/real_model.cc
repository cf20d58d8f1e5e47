// SPDX-License-Identifier: Apache-2.0
// Implements real_model.h: the list of real families, whose folders have functions of the same names.
#include "reference/engine/real_model.h"

#include <vector>

#include "conformance/contract/error.h"
#include "reference/gpt2/model.h"
#include "reference/gpt2/tensors.h"
#include "reference/llama/model.h"
#include "reference/llama/tensors.h"
#include "reference/ops/matrix.h"
#include "reference/real/step_context.h"

namespace plumbline::reference {
namespace {

using gpt2::TensorsFor;
using llama::TensorsFor;

// ModelTensors and ModelTape are those of the family whose sizes Spec has.
template <typename Spec, typename ModelTensors, typename ModelTape>
class ModelOf : public RealModel {
 public:
  ModelOf(const Spec& spec, uint64_t seed) : spec_(spec), seed_(seed) {}

  double Forward(int64_t step, const Tensors& weights, const StepBatch& batch) override {
    step_ = step;
    batch_ = batch;
    weights_ = ByName(weights);
    tape_ = ModelForward(Context(), weights_, batch_);
    return tape_.loss.loss;
  }

  Tensors Backward() override {
    ModelTensors gradients = ModelBackward(Context(), weights_, batch_, tape_);
    Tensors in_order;
    for (const Matrix* gradient : InCanonicalOrder(gradients)) in_order.push_back(*gradient);
    return in_order;
  }

 private:
  RealStepContext<Spec> Context() const { return {spec_, seed_, step_}; }

  ModelTensors ByName(const Tensors& weights) const {
    ModelTensors named = TensorsFor(spec_);
    const std::vector<Matrix*> order = InCanonicalOrder(named);
    contract::Check(order.size() == weights.size(), "the model has the case's parameters");
    for (size_t i = 0; i < order.size(); ++i) *order[i] = weights[i];
    return named;
  }

  const Spec& spec_;
  const uint64_t seed_;

  int64_t step_ = 0;
  StepBatch batch_;
  ModelTensors weights_;
  ModelTape tape_;
};

using Gpt2Model = ModelOf<contract::Gpt2Spec, gpt2::ModelTensors, gpt2::ModelTape>;
using LlamaModel = ModelOf<contract::LlamaSpec, llama::ModelTensors, llama::ModelTape>;

}  // namespace

std::unique_ptr<RealModel> MakeRealModel(const contract::ModelSpec& spec, uint64_t seed) {
  if (spec.kind() == contract::Family::kLlama) return std::make_unique<LlamaModel>(spec.llama(), seed);
  return std::make_unique<Gpt2Model>(spec.gpt2(), seed);
}

}  // namespace plumbline::reference
