// SPDX-License-Identifier: Apache-2.0
// Implements exact_trainer.h.
#include "reference/engine/exact_trainer.h"

#include <cmath>
#include <string>

#include "conformance/contract/error.h"
#include "reference/optimizer/modular_momentum.h"
#include "reference/optimizer/modular_sgd.h"
#include "reference/optimizer/working_weight.h"

namespace plumbline::reference {
namespace {

Matrix ToMatrix(const contract::ParameterSpec& parameter, const std::vector<int64_t>& values) {
  return Matrix(parameter.rows, parameter.cols, std::vector<double>(values.begin(), values.end()));
}

std::vector<std::string> Names(const std::vector<contract::ParameterSpec>& parameters) {
  std::vector<std::string> names;
  for (const contract::ParameterSpec& parameter : parameters) names.push_back(parameter.name);
  return names;
}

ModelTensors<Matrix> ByLetter(const Tensors& weights, int64_t layers) {
  ModelTensors<Matrix> model;
  model.layers.resize(static_cast<size_t>(layers));
  const std::vector<Matrix*> order = InCanonicalOrder(model);
  contract::Check(order.size() == weights.size(), "the model has the case's parameters");
  for (size_t i = 0; i < order.size(); ++i) *order[i] = weights[i];
  return model;
}

}  // namespace

ExactTrainer::ExactTrainer(const contract::CaseData& data)
    : data_(data),
      folds_(Folds::Of(data.spec.model.exact())),
      perturber_(data.spec.perturbation, data.spec.model.exact()),
      liveness_(Names(data.parameters)) {
  for (size_t i = 0; i < data_.parameters.size(); ++i) {
    const contract::ParameterState& state = data_.state.at(i);
    weight_.push_back(ToMatrix(data_.parameters[i], state.weight));
    master_.push_back(ToMatrix(data_.parameters[i], state.master));
    if (data_.spec.config.optimizer == contract::OptimizerKind::kModularMomentum)
      moment_.push_back(ToMatrix(data_.parameters[i], state.moment));
  }
}

void ExactTrainer::Forward(int64_t step) {
  step_ = step;
  recorder_.BeginStep(step);
  batch_ = BatchOf(data_.batches, step);
  for (size_t i = 0; i < weight_.size(); ++i) {
    const std::string& name = data_.parameters[i].name;
    weight_[i] = perturber_.Weight(step, name, weight_[i]);
    recorder_.Stored(weight_[i], {.name = name.c_str()});
  }
  model_ = ByLetter(weight_, data_.spec.model.exact().layers);
  tape_ = ModelForward(Context(), model_, batch_);
}

void ExactTrainer::Backward() {
  const ModelTensors<Sum> gradients = ModelBackward(Context(), model_, batch_, tape_);
  const std::vector<const Sum*> order = InCanonicalOrder(gradients);
  gradient_.clear();
  for (size_t i = 0; i < order.size(); ++i) {
    const std::string& name = data_.parameters[i].name;
    recorder_.GradientSum(*order[i], {.name = name.c_str()});
    gradient_.push_back(perturber_.Gradient(step_, name, order[i]->value));
    recorder_.Gradient(gradient_.back(), {.name = name.c_str()});
  }
}

void ExactTrainer::CheckGradient() {
  for (size_t i = 0; i < gradient_.size(); ++i) {
    for (int64_t element = 0; element < gradient_[i].numel(); ++element) {
      const double value = gradient_[i][element];
      if (std::floor(value) == value && std::isfinite(value)) continue;
      contract::Fail(contract::ErrorCode::kInternal, "the gradient of " + data_.parameters[i].name + ", element " +
                                                         std::to_string(element) + ", step " + std::to_string(step_) +
                                                         ", is " + std::to_string(value) + ", not an integer");
    }
  }
}

void ExactTrainer::Update() {
  // The counter is 1 in the first step.
  const auto t = static_cast<double>(step_ + 1 + perturber_.CounterOffset(step_));
  for (size_t i = 0; i < gradient_.size(); ++i) UpdateTensor(i, t);
}

void ExactTrainer::UpdateTensor(size_t tensor, double t) {
  const std::string& name = data_.parameters[tensor].name;
  const auto weight_bound = static_cast<double>(data_.spec.model.exact().weight_bound);
  const Matrix& gradient = gradient_[tensor];
  const Matrix master = perturber_.Master(step_, name, master_[tensor]);
  recorder_.State(master, {.name = name.c_str()});
  switch (data_.spec.config.optimizer) {
    case contract::OptimizerKind::kModularMomentum: {
      const Matrix moment = perturber_.Moment(step_, name, moment_[tensor]);
      recorder_.State(moment, {.name = name.c_str()});
      const ModularMomentumResult result = ModularMomentum(gradient, moment, master, t, weight_bound);
      recorder_.State(result.unwrapped, {.name = name.c_str()});
      recorder_.State(result.moment, {.name = name.c_str()});
      moment_[tensor] = result.moment;
      master_[tensor] = result.master;
      break;
    }
    case contract::OptimizerKind::kModularSgd:
      master_[tensor] = ModularSgd(gradient, master, weight_bound);
      break;
    default:
      contract::Fail(contract::ErrorCode::kInternal, "family exact has a modular optimizer");
  }
  recorder_.State(master_[tensor], {.name = name.c_str()});
  const Matrix weight_before = weight_[tensor];
  weight_[tensor] = WorkingWeight(master_[tensor], weight_bound);
  liveness_.Note(tensor, gradient, weight_before, weight_[tensor]);
}

const Tensors& ExactTrainer::Of(contract::TensorKind kind) const {
  switch (kind) {
    case contract::TensorKind::kGradient:
      return gradient_;
    case contract::TensorKind::kMoment:
      return moment_;
    case contract::TensorKind::kSecondMoment:
      return none_;
    case contract::TensorKind::kMaster:
      return master_;
    case contract::TensorKind::kWeight:
      break;
  }
  return weight_;
}

}  // namespace plumbline::reference
