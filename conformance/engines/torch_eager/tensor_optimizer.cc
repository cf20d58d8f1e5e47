// SPDX-License-Identifier: Apache-2.0
// What LibTorch lacks, Lion and LAMB, as operations on whole tensors in the terms of optimizer.h.
// Sources: Chen et al. 2023, "Symbolic Discovery of Optimization Algorithms", algorithm 2; You et al. 2020, "Large
// Batch Optimization for Deep Learning", algorithm 2, with limits of the ratio (docs/semantics.md).
#include <ATen/TensorOperators.h>
#include <ATen/ops/sign.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "conformance/contract/case_file.h"
#include "conformance/engines/torch_eager/optimizer.h"

namespace plumbline::conformance::torch_eager {
namespace {

struct Moments {
  at::Tensor first;
  at::Tensor second;  // undefined where the optimizer has none
};

// What holds for all parameters of a group in a step.
struct Settings {
  double lr = 0;
  double decay = 0;
  Betas betas;
  double t = 0;  // the number of the update, 1 the first
};

// Groups, and a state for each parameter; an optimizer adds its update.
class TensorOptimizer : public Optimizer {
 public:
  TensorOptimizer(const contract::RunConfig& config, const ParametersOfGroups& parameters) : parameters_(parameters) {
    const bool has_second = contract::HasSecondMoment(config);
    for (size_t g = 0; g < parameters.size(); ++g) {
      decays_.push_back(WeightDecayOf(config, static_cast<int64_t>(g)));
      for (const at::Tensor& parameter : parameters[g]) {
        moments_[KeyOf(parameter)] = {at::zeros_like(parameter), has_second ? at::zeros_like(parameter) : at::Tensor()};
      }
    }
  }

  void Resume(const at::Tensor& parameter, int64_t num_updates, const at::Tensor& moment,
              const at::Tensor& second_moment) override {
    num_updates_ = num_updates;  // the same for all
    moments_.at(KeyOf(parameter)) = {moment, second_moment};
  }

  void Step(const std::vector<double>& rates, const std::vector<Betas>& betas) override {
    ++num_updates_;
    for (size_t g = 0; g < parameters_.size(); ++g) {
      const Settings settings = {rates.at(g), decays_[g], betas.at(g), static_cast<double>(num_updates_)};
      for (const at::Tensor& parameter : parameters_[g]) Update(settings, parameter, moments_.at(KeyOf(parameter)));
    }
  }

  at::Tensor Moment(const at::Tensor& parameter, bool second) const override {
    const Moments& moments = moments_.at(KeyOf(parameter));
    return second ? moments.second : moments.first;
  }

 private:
  using Key = const c10::TensorImpl*;

  static Key KeyOf(const at::Tensor& parameter) { return parameter.unsafeGetTensorImpl(); }

  // In place, by parameter.grad().
  virtual void Update(const Settings& settings, const at::Tensor& parameter, Moments& moments) const = 0;

  ParametersOfGroups parameters_;
  std::vector<double> decays_;  // of groups
  std::map<Key, Moments> moments_;
  int64_t num_updates_ = 0;
};

class Lion : public TensorOptimizer {
 public:
  using TensorOptimizer::TensorOptimizer;

 private:
  // The moment that the direction is made of is the old one.
  void Update(const Settings& settings, const at::Tensor& parameter, Moments& moments) const override {
    const auto [beta1, beta2] = settings.betas;
    const at::Tensor& gradient = parameter.grad();
    const at::Tensor direction = at::sign(moments.first * beta1 + gradient * (1 - beta1));
    parameter.mul_(1 - settings.lr * settings.decay).sub_(direction * settings.lr);
    moments.first = moments.first * beta2 + gradient * (1 - beta2);
  }
};

// Its squares are summed in fp64.
double Norm(const at::Tensor& x) { return std::sqrt(x.to(at::kDouble).square().sum().item<double>()); }

class Lamb : public TensorOptimizer {
 public:
  Lamb(const contract::RunConfig& config, const ParametersOfGroups& parameters)
      : TensorOptimizer(config, parameters), params_(config.params) {}

 private:
  void Update(const Settings& settings, const at::Tensor& parameter, Moments& moments) const override {
    const auto [beta1, beta2] = settings.betas;
    const at::Tensor& gradient = parameter.grad();
    moments.first = moments.first * beta1 + gradient * (1 - beta1);
    moments.second = moments.second * beta2 + gradient.square() * (1 - beta2);
    const at::Tensor first = moments.first / (1 - std::pow(beta1, settings.t));
    const at::Tensor second = moments.second / (1 - std::pow(beta2, settings.t));
    const at::Tensor step = first / (second.sqrt() + params_.eps) + parameter * settings.decay;
    parameter.sub_(step * (settings.lr * Ratio(Norm(parameter), Norm(step))));
  }

  // Between the limits, but 1, whatever they are, where there is no ratio.
  double Ratio(double parameter_norm, double step_norm) const {
    if (parameter_norm == 0 || step_norm == 0) return 1;
    return std::clamp(parameter_norm / step_norm, params_.min_coeff, params_.max_coeff);
  }

  const contract::OptimizerParams params_;
};

}  // namespace

std::unique_ptr<Optimizer> MakeLion(const contract::RunConfig& config, const ParametersOfGroups& parameters) {
  return std::make_unique<Lion>(config, parameters);
}

std::unique_ptr<Optimizer> MakeLamb(const contract::RunConfig& config, const ParametersOfGroups& parameters) {
  return std::make_unique<Lamb>(config, parameters);
}

}  // namespace plumbline::conformance::torch_eager
