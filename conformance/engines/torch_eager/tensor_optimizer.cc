// SPDX-License-Identifier: Apache-2.0
// What LibTorch lacks, Lion, as operations on whole tensors in the terms of optimizer.h.
// Source: Chen et al. 2023, "Symbolic Discovery of Optimization Algorithms", algorithm 2.
#include <ATen/TensorOperators.h>
#include <ATen/ops/sign.h>
#include <ATen/ops/zeros_like.h>

#include <map>

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
};

// Groups, and a state for each parameter; an optimizer adds its update.
class TensorOptimizer : public Optimizer {
 public:
  TensorOptimizer(const contract::RunConfig& config, const ParametersOfGroups& parameters) : parameters_(parameters) {
    for (size_t g = 0; g < parameters.size(); ++g) {
      decays_.push_back(WeightDecayOf(config, static_cast<int64_t>(g)));
      for (const at::Tensor& parameter : parameters[g]) moments_[KeyOf(parameter)] = {at::zeros_like(parameter), {}};
    }
  }

  void Resume(const at::Tensor& parameter, int64_t /*num_updates*/, const at::Tensor& moment,
              const at::Tensor& second_moment) override {
    moments_.at(KeyOf(parameter)) = {moment, second_moment};
  }

  void Step(const std::vector<double>& rates, const std::vector<Betas>& betas) override {
    for (size_t g = 0; g < parameters_.size(); ++g) {
      const Settings settings = {rates.at(g), decays_[g], betas.at(g)};
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

}  // namespace

std::unique_ptr<Optimizer> MakeLion(const contract::RunConfig& config, const ParametersOfGroups& parameters) {
  return std::make_unique<Lion>(config, parameters);
}

}  // namespace plumbline::conformance::torch_eager
