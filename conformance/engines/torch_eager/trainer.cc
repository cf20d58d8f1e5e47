// SPDX-License-Identifier: Apache-2.0
// Implementation of trainer.h: parameters as autograd leaves, one call to autograd a step, the update in int64.
#include "conformance/engines/torch_eager/trainer.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/remainder.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>

#include <array>
#include <string>
#include <tuple>
#include <utility>

#include "conformance/contract/error.h"
#include "conformance/engines/torch_eager/decoder.h"
#include "conformance/engines/torch_eager/dropout_masks.h"

namespace plumbline::conformance::torch_eager {
namespace {

using contract::Check;
using contract::TensorKind;

at::Tensor Copy(const std::vector<int64_t>& values, int64_t rows, int64_t cols) {
  Check(static_cast<int64_t>(values.size()) == rows * cols, "state of a parameter has its shape");
  return at::from_blob(const_cast<int64_t*>(values.data()), {rows, cols}, at::kLong).clone();
}

at::Tensor StepOf(const std::vector<int32_t>& values, const contract::Batches& batches, int64_t step) {
  int32_t* first = const_cast<int32_t*>(values.data()) + batches.Index(step, 0, 0);
  return at::from_blob(first, {batches.batch, batches.positions}, at::kInt).to(at::kLong);
}

at::Tensor Leaf(const at::Tensor& weight) { return weight.to(at::kFloat).requires_grad_(true); }

// ((x + bound) mod (2 bound + 1)) - bound.
at::Tensor Wrap(const at::Tensor& x, int64_t bound) { return at::remainder(x + bound, 2 * bound + 1) - bound; }

// (moment, master) after the step of number `counter`, 1 in the first step. Source: docs/exact-family.md, "Optimizers".
std::pair<at::Tensor, at::Tensor> ModularMomentum(const at::Tensor& gradient, const at::Tensor& moment,
                                                  const at::Tensor& master, int64_t counter, int64_t modulus) {
  constexpr int64_t kMomentBound = 14;
  constexpr int64_t kMomentModulus = 2 * kMomentBound + 1;
  const at::Tensor new_moment =
      Wrap(moment + at::remainder(gradient, kMomentModulus) + counter % kMomentModulus, kMomentBound);
  return {new_moment, at::remainder(master - new_moment - counter % modulus, modulus)};
}

at::Tensor ModularSgd(const at::Tensor& gradient, const at::Tensor& master, int64_t modulus) {
  return at::remainder(master - at::remainder(gradient, modulus), modulus);
}

at::Tensor WorkingWeight(const at::Tensor& master, int64_t weight_bound) {
  return master.div(8, "floor") - weight_bound;
}

// The gradient as int64. A fraction or an overflow is a broken run, not something to round away.
at::Tensor Integers(const at::Tensor& gradient, const std::string& name) {
  const at::Tensor integers = gradient.to(at::kLong);
  if (!integers.to(gradient.scalar_type()).equal(gradient)) {
    contract::Fail(contract::ErrorCode::kInvalidArgument, "gradient of " + name + " is not an integer");
  }
  return integers;
}

}  // namespace

struct Trainer::State {
  State(const contract::CaseData& case_data)
      : data(case_data),
        momentum(data.spec.config.optimizer == contract::OptimizerKind::kModularMomentum),
        decoder(data.spec.model.exact(), data.spec.config.storage, data.spec.config.loss_scale) {
    at::set_num_threads(1);
    for (size_t i = 0; i < data.parameters.size(); ++i) {
      const int64_t rows = data.parameters[i].rows, cols = data.parameters[i].cols;
      weights.push_back(Leaf(Copy(data.state[i].weight, rows, cols)));
      masters.push_back(Copy(data.state[i].master, rows, cols));
      if (momentum) moments.push_back(Copy(data.state[i].moment, rows, cols));
    }
  }

  std::vector<at::Tensor> TwiceMasks(int64_t step) const {
    std::vector<at::Tensor> masks;
    if (!data.spec.model.exact().dropout) return masks;
    const std::array<int64_t, 3> shape = {data.batches.batch, data.batches.positions, data.spec.model.exact().width};
    for (int64_t l = 0; l < data.spec.model.exact().layers; ++l) {
      for (const contract::Site site : {contract::Site::kDropoutAttention, contract::Site::kDropoutMlp}) {
        std::vector<float> values = TwiceKeepMask(data.spec.seed, site, step, l, shape[0] * shape[1] * shape[2]);
        masks.push_back(at::from_blob(values.data(), shape, at::kFloat).clone());
      }
    }
    return masks;
  }

  void Update(size_t i) {
    const int64_t modulus = data.spec.model.exact().master_modulus();
    if (momentum) {
      std::tie(moments[i], masters[i]) = ModularMomentum(gradients[i], moments[i], masters[i], counter, modulus);
    } else {
      masters[i] = ModularSgd(gradients[i], masters[i], modulus);
    }
    weights[i] = Leaf(WorkingWeight(masters[i], data.spec.model.exact().weight_bound));
  }

  const contract::CaseData& data;
  bool momentum;
  Decoder decoder;
  int64_t counter = 0;  // finished steps, then the number t of the step under way
  at::Tensor loss;
  std::vector<at::Tensor> weights;    // fp32 leaves
  std::vector<at::Tensor> gradients;  // int64
  std::vector<at::Tensor> masters;    // int64
  std::vector<at::Tensor> moments;    // int64; none with ModularSGD
};

Trainer::Trainer(const contract::CaseData& data) : state_(std::make_unique<State>(data)) {}

Trainer::~Trainer() = default;

StepLoss Trainer::Forward(int64_t step) {
  const contract::Batches& batches = state_->data.batches;
  const at::Tensor tokens = StepOf(batches.tokens, batches, step);
  const at::Tensor labels = StepOf(batches.labels, batches, step);
  const at::Tensor loss_weights = StepOf(batches.loss_weights, batches, step);
  const int64_t num_weighted = loss_weights.ne(0).sum().item<int64_t>();
  if (num_weighted == 0) {
    contract::Fail(contract::ErrorCode::kInvalidArgument,
                   "batches: step " + std::to_string(step) + " has no token with a loss weight other than 0");
  }
  state_->loss = state_->decoder.Loss(state_->weights, tokens, labels, loss_weights, state_->TwiceMasks(step));
  return {state_->loss.item<double>(), num_weighted};
}

void Trainer::Backward() {
  const double loss_scale = static_cast<double>(state_->data.spec.config.loss_scale);
  const std::vector<at::Tensor> gradients =
      torch::autograd::grad({state_->loss}, state_->weights, {at::full_like(state_->loss, loss_scale)});
  state_->loss.reset();
  state_->gradients.clear();
  for (size_t i = 0; i < gradients.size(); ++i) {
    state_->gradients.push_back(Integers(gradients[i] / loss_scale, state_->data.parameters[i].name));
  }
}

void Trainer::Update() {
  ++state_->counter;
  for (size_t i = 0; i < state_->weights.size(); ++i) state_->Update(i);
}

std::vector<int64_t> Trainer::Values(TensorKind kind, size_t index) const {
  const State& state = *state_;
  at::Tensor tensor;
  switch (kind) {
    case TensorKind::kGradient:
      tensor = state.gradients.at(index);
      break;
    case TensorKind::kMoment:
      if (!state.momentum) return {};
      tensor = state.moments.at(index);
      break;
    case TensorKind::kSecondMoment:
      return {};
    case TensorKind::kMaster:
      tensor = state.masters.at(index);
      break;
    case TensorKind::kWeight:
      tensor = state.weights.at(index).detach().to(at::kLong);
      break;
  }
  tensor = tensor.contiguous();
  const int64_t* values = tensor.const_data_ptr<int64_t>();
  return {values, values + tensor.numel()};
}

}  // namespace plumbline::conformance::torch_eager
