// SPDX-License-Identifier: Apache-2.0
// Implements real_trainer.h.
#include "reference/engine/real_trainer.h"

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

}  // namespace

RealTrainer::RealTrainer(const contract::CaseData& data)
    : data_(data), model_(MakeRealModel(data_.spec.model, data_.spec.seed)), num_updates_(data.num_updates) {
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

void RealTrainer::Forward(int64_t step) {
  step_ = step;
  batch_ = BatchOf(data_.batches, step);
  loss_ = model_->Forward(step, master_, batch_);
}

void RealTrainer::Backward() {
  gradient_ = model_->Backward();
  for (size_t i = 0; i < gradient_.size(); ++i)
    if (data_.parameters[i].frozen) gradient_[i] = Matrix();
}

void RealTrainer::CheckGradient() {
  real_.skipped = !AllFinite(gradient_);
  Tensors in_norm;
  for (size_t i = 0; i < gradient_.size(); ++i)
    if (real_.skipped || !Exempt(i)) in_norm.push_back(gradient_[i]);
  real_.gradient_norm = GlobalNorm(in_norm);
}

void RealTrainer::Update() {
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

bool RealTrainer::Exempt(size_t parameter) const {
  return IsExempt(data_.spec.config, data_.parameters[parameter].name);
}

// Of units, each has its own.
double RealTrainer::ClippingFactor() const {
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

Matrix RealTrainer::Clipped(size_t parameter, double factor) const {
  if (Exempt(parameter)) return gradient_[parameter];
  const contract::AdaptiveClipping& adaptive = data_.spec.config.adaptive_clipping;
  if (adaptive.kind == contract::AdaptiveClipping::Kind::kUnit)
    return ClipUnits(gradient_[parameter], master_[parameter], data_.parameters[parameter].units, adaptive.ratio,
                     adaptive.eps);
  return Scaled(gradient_[parameter], factor);
}

ParameterState RealTrainer::StateOf(size_t parameter) const {
  ParameterState state;
  if (!moment_.empty()) state.moment = moment_[parameter];
  if (!second_moment_.empty()) state.second_moment = second_moment_[parameter];
  state.master = master_[parameter];
  return state;
}

void RealTrainer::Keep(size_t parameter, const ParameterState& state) {
  if (!moment_.empty()) moment_[parameter] = state.moment;
  if (!second_moment_.empty()) second_moment_[parameter] = state.second_moment;
  master_[parameter] = state.master;
}

int64_t RealTrainer::num_weighted_tokens() const {
  int64_t count = 0;
  for (const double u : batch_.loss_weights) count += u != 0 ? 1 : 0;
  return count;
}

const Tensors& RealTrainer::Of(contract::TensorKind kind) const {
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
