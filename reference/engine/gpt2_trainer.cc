// SPDX-License-Identifier: Apache-2.0
// Implements gpt2_trainer.h.
#include "reference/engine/gpt2_trainer.h"

#include <string>

#include "conformance/contract/error.h"
#include "reference/optimizer/clipping.h"
#include "reference/optimizer/history_clipping.h"
#include "reference/optimizer/parameter_groups.h"
#include "reference/optimizer/unit_clipping.h"

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
  if (contract::HasNormHistory(data_.spec.config)) real_.norm_history = data_.norm_history;
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
  real_.skipped = !AllFinite(gradient_);
  Tensors in_norm;
  for (size_t i = 0; i < gradient_.size(); ++i)
    if (real_.skipped || !Exempt(i)) in_norm.push_back(gradient_[i]);
  real_.gradient_norm = GlobalNorm(in_norm);
}

void Gpt2Trainer::Update() {
  const contract::RunConfig& config = data_.spec.config;
  real_.lr = GroupLearningRates(config, step_);
  if (real_.skipped) return;
  ++num_updates_;
  const std::vector<double> weight_decays = GroupWeightDecays(config);
  const std::vector<contract::OptimizerParams> params = GroupParams(config, step_);
  const double factor = ClippingFactor();
  if (real_.norm_history)
    real_.norm_history = HistoryAfter(config.adaptive_clipping, *real_.norm_history, real_.gradient_norm);
  for (size_t i = 0; i < gradient_.size(); ++i) {
    if (data_.parameters[i].frozen) continue;
    const size_t group = GroupOf(config, data_.parameters[i].name);
    Keep(i, UpdateParameter(config.optimizer, Clipped(i, factor), StateOf(i), num_updates_, real_.lr[group],
                            weight_decays[group], params[group]));
  }
}

bool Gpt2Trainer::Exempt(size_t parameter) const {
  return IsExempt(data_.spec.config, data_.parameters[parameter].name);
}

// Of units, each has its own.
double Gpt2Trainer::ClippingFactor() const {
  const contract::RunConfig& config = data_.spec.config;
  switch (config.adaptive_clipping.kind) {
    case contract::AdaptiveClipping::Kind::kNone:
      return ClipFactor(real_.gradient_norm, config.gradient_clipping);
    case contract::AdaptiveClipping::Kind::kUnit:
      return 1;
    case contract::AdaptiveClipping::Kind::kHistory:
      return HistoryFactor(config.adaptive_clipping, *real_.norm_history, real_.gradient_norm);
  }
  contract::Fail(contract::ErrorCode::kUnsupported,
                 "config.adaptive_clipping.type is number " +
                     std::to_string(static_cast<int>(config.adaptive_clipping.kind)) +
                     "; the reference knows none, unit, history");
}

Matrix Gpt2Trainer::Clipped(size_t parameter, double factor) const {
  if (Exempt(parameter)) return gradient_[parameter];
  const contract::AdaptiveClipping& adaptive = data_.spec.config.adaptive_clipping;
  if (adaptive.kind == contract::AdaptiveClipping::Kind::kUnit)
    return ClipUnits(gradient_[parameter], master_[parameter], data_.parameters[parameter].units, adaptive.ratio,
                     adaptive.eps);
  return Scaled(gradient_[parameter], factor);
}

ParameterState Gpt2Trainer::StateOf(size_t parameter) const {
  ParameterState state;
  if (!moment_.empty()) state.moment = moment_[parameter];
  if (!second_moment_.empty()) state.second_moment = second_moment_[parameter];
  state.master = master_[parameter];
  return state;
}

void Gpt2Trainer::Keep(size_t parameter, const ParameterState& state) {
  if (!moment_.empty()) moment_[parameter] = state.moment;
  if (!second_moment_.empty()) second_moment_[parameter] = state.second_moment;
  master_[parameter] = state.master;
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
