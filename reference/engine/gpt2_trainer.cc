// SPDX-License-Identifier: Apache-2.0
// Implements gpt2_trainer.h.
#include "reference/engine/gpt2_trainer.h"

#include "conformance/contract/error.h"
#include "reference/optimizer/adamw.h"
#include "reference/optimizer/clipping.h"
#include "reference/optimizer/parameter_groups.h"
#include "reference/optimizer/schedule.h"
#include "reference/optimizer/sgd.h"

namespace plumbline::reference {
namespace {

// No elements where there are no values.
Matrix ToMatrix(const contract::ParameterSpec& parameter, const std::vector<float>& values) {
  if (values.empty()) return Matrix();
  return Matrix(parameter.rows, parameter.cols, std::vector<double>(values.begin(), values.end()));
}

gpt2::ModelTensors ByName(const Tensors& weights, const contract::Gpt2Spec& spec) {
  gpt2::ModelTensors model = gpt2::TensorsFor(spec);
  const std::vector<Matrix*> order = gpt2::InCanonicalOrder(model);
  contract::Check(order.size() == weights.size(), "the model has the case's parameters");
  for (size_t i = 0; i < order.size(); ++i) *order[i] = weights[i];
  return model;
}

}  // namespace

Gpt2Trainer::Gpt2Trainer(const contract::CaseData& data) : data_(data), num_updates_(data.num_updates) {
  for (size_t i = 0; i < data_.parameters.size(); ++i) {
    const contract::ParameterSpec& parameter = data_.parameters[i];
    const contract::RealParameterState& state = data_.real_state.at(i);
    master_.push_back(ToMatrix(parameter, state.master));
    if (contract::HasMoment(data_.spec.config)) moment_.push_back(ToMatrix(parameter, state.moment));
    if (contract::HasSecondMoment(data_.spec.config))
      second_moment_.push_back(ToMatrix(parameter, state.second_moment));
  }
}

void Gpt2Trainer::Forward(int64_t step) {
  step_ = step;
  batch_ = BatchOf(data_.batches, step);
  model_ = ByName(master_, data_.spec.model.gpt2());
  tape_ = gpt2::ModelForward(Context(), model_, batch_);
}

void Gpt2Trainer::Backward() {
  gpt2::ModelTensors gradients = gpt2::ModelBackward(Context(), model_, batch_, tape_);
  const std::vector<Matrix*> order = gpt2::InCanonicalOrder(gradients);
  gradient_.clear();
  for (size_t i = 0; i < order.size(); ++i) gradient_.push_back(data_.parameters[i].frozen ? Matrix() : *order[i]);
}

void Gpt2Trainer::CheckGradient() {
  real_.gradient_norm = GlobalNorm(gradient_);
  real_.skipped = !AllFinite(gradient_);
}

void Gpt2Trainer::Update() {
  const contract::RunConfig& config = data_.spec.config;
  real_.lr = GroupLearningRates(config, step_);
  if (real_.skipped) return;
  ++num_updates_;
  const std::vector<double> weight_decays = GroupWeightDecays(config);
  const double factor = ClipFactor(real_.gradient_norm, config.gradient_clipping);
  for (size_t i = 0; i < gradient_.size(); ++i) {
    if (data_.parameters[i].frozen) continue;
    const size_t group = GroupOf(config, data_.parameters[i].name);
    UpdateTensor(i, Scaled(gradient_[i], factor), real_.lr[group], weight_decays[group]);
  }
}

void Gpt2Trainer::UpdateTensor(size_t tensor, const Matrix& gradient, double lr, double weight_decay) {
  const contract::RunConfig& config = data_.spec.config;
  Matrix& master = master_[tensor];
  if (config.optimizer == contract::OptimizerKind::kAdamW) {
    const AdamWResult result = AdamW(gradient, moment_[tensor], second_moment_[tensor], master, num_updates_, lr,
                                     weight_decay, ParamsInStep(config, step_));
    moment_[tensor] = result.moment;
    second_moment_[tensor] = result.second_moment;
    master = result.master;
  } else if (contract::HasMoment(config)) {
    const SgdMomentumResult result =
        SgdMomentum(gradient, moment_[tensor], master, num_updates_, lr, weight_decay, config.params.momentum);
    moment_[tensor] = result.moment;
    master = result.master;
  } else {
    master = Sgd(gradient, master, lr, weight_decay);
  }
}

int64_t Gpt2Trainer::num_weighted_tokens() const {
  int64_t count = 0;
  for (const double u : batch_.loss_weights) count += u != 0 ? 1 : 0;
  return count;
}

const Tensors& Gpt2Trainer::Of(contract::TensorKind kind) const {
  switch (kind) {
    case contract::TensorKind::kGradient:
      return gradient_;
    case contract::TensorKind::kMoment:
      return moment_;
    case contract::TensorKind::kSecondMoment:
      return second_moment_;
    case contract::TensorKind::kMaster:
    case contract::TensorKind::kWeight:
      break;
  }
  return master_;
}

}  // namespace plumbline::reference
