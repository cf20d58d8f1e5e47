// SPDX-License-Identifier: Apache-2.0
// AdamW, Adam and SGD of torch::optim in the terms of optimizer.h; the moments live in its state. Its headers bring all
// of LibTorch's C++ front end, in this file only.
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <utility>

#include "conformance/engines/torch_eager/optimizer.h"

namespace plumbline::conformance::torch_eager {
namespace {

using torch::optim::OptimizerParamGroup;

// `set` adds to the options of a group what is not lr, which each step sets, nor decay.
template <typename Options, typename Set>
std::vector<OptimizerParamGroup> MakeGroups(const contract::RunConfig& config, const ParametersOfGroups& parameters,
                                            const Set& set) {
  std::vector<OptimizerParamGroup> groups;
  for (size_t g = 0; g < parameters.size(); ++g) {
    auto options = std::make_unique<Options>(config.params.lr);
    options->weight_decay(WeightDecayOf(config, static_cast<int64_t>(g)));
    set(*options);
    groups.emplace_back(parameters[g], std::move(options));
  }
  return groups;
}

// Null where the library has not seen the parameter yet.
template <typename ParamState>
const ParamState* StateOf(const torch::optim::Optimizer& optimizer, const at::Tensor& parameter) {
  const auto& states = optimizer.state();
  const auto found = states.find(parameter.unsafeGetTensorImpl());
  return found == states.end() ? nullptr : static_cast<const ParamState*>(found->second.get());
}

// The library's AdamW or Adam, which differ in where the decay goes.
template <typename Library, typename Options, typename ParamState>
class AdamLike : public Optimizer {
 public:
  AdamLike(const contract::RunConfig& config, const ParametersOfGroups& parameters)
      : optimizer_(MakeGroups<Options>(config, parameters, [&](Options& options) { options.eps(config.params.eps); }),
                   Options(config.params.lr)) {}

  void Resume(const at::Tensor& parameter, int64_t num_updates, const at::Tensor& moment,
              const at::Tensor& second_moment) override {
    auto state = std::make_unique<ParamState>();
    state->step(num_updates).exp_avg(moment).exp_avg_sq(second_moment);
    optimizer_.state()[parameter.unsafeGetTensorImpl()] = std::move(state);
  }

  void Step(const std::vector<double>& rates, const std::vector<Betas>& betas) override {
    for (size_t g = 0; g < rates.size(); ++g) {
      auto& options = static_cast<Options&>(optimizer_.param_groups().at(g).options());
      options.lr(rates[g]).betas({betas.at(g).beta1, betas.at(g).beta2});
    }
    optimizer_.step();
  }

  at::Tensor Moment(const at::Tensor& parameter, bool second) const override {
    const auto* state = StateOf<ParamState>(optimizer_, parameter);
    if (state == nullptr) return {};
    return second ? state->exp_avg_sq() : state->exp_avg();
  }

 private:
  Library optimizer_;
};

using AdamW = AdamLike<torch::optim::AdamW, torch::optim::AdamWOptions, torch::optim::AdamWParamState>;
using Adam = AdamLike<torch::optim::Adam, torch::optim::AdamOptions, torch::optim::AdamParamState>;

class Sgd : public Optimizer {
 public:
  Sgd(const contract::RunConfig& config, const ParametersOfGroups& parameters)
      : optimizer_(MakeGroups<Options>(config, parameters,
                                       [&](Options& options) {
                                         options.momentum(config.params.momentum).nesterov(config.params.nesterov);
                                       }),
                   Options(config.params.lr)) {}

  // The first update takes the gradient for the buffer, whatever the state of a case holds.
  void Resume(const at::Tensor& parameter, int64_t num_updates, const at::Tensor& moment,
              const at::Tensor& /*second_moment*/) override {
    if (num_updates == 0 || !moment.defined()) return;
    auto state = std::make_unique<ParamState>();
    state->momentum_buffer(moment);
    optimizer_.state()[parameter.unsafeGetTensorImpl()] = std::move(state);
  }

  // It has no betas: a schedule leaves its momentum alone.
  void Step(const std::vector<double>& rates, const std::vector<Betas>& /*betas*/) override {
    for (size_t g = 0; g < rates.size(); ++g) optimizer_.param_groups().at(g).options().set_lr(rates[g]);
    optimizer_.step();
  }

  at::Tensor Moment(const at::Tensor& parameter, bool second) const override {
    const auto* state = StateOf<ParamState>(optimizer_, parameter);
    return second || state == nullptr ? at::Tensor() : state->momentum_buffer();
  }

 private:
  using Options = torch::optim::SGDOptions;
  using ParamState = torch::optim::SGDParamState;

  torch::optim::SGD optimizer_;
};

}  // namespace

std::unique_ptr<Optimizer> MakeLibraryAdamW(const contract::RunConfig& config, const ParametersOfGroups& parameters) {
  return std::make_unique<AdamW>(config, parameters);
}

std::unique_ptr<Optimizer> MakeLibraryAdam(const contract::RunConfig& config, const ParametersOfGroups& parameters) {
  return std::make_unique<Adam>(config, parameters);
}

std::unique_ptr<Optimizer> MakeLibrarySgd(const contract::RunConfig& config, const ParametersOfGroups& parameters) {
  return std::make_unique<Sgd>(config, parameters);
}

}  // namespace plumbline::conformance::torch_eager
