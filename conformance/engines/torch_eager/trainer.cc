// SPDX-License-Identifier: Apache-2.0
// Implementation of trainer.h: parameters as autograd leaves, one call to autograd a step, the update in int64.
#include "conformance/engines/torch_eager/trainer.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>

#include <array>
#include <string>
#include <tuple>

#include "conformance/contract/error.h"
#include "conformance/engines/torch_eager/decoder.h"
#include "conformance/engines/torch_eager/dropout_masks.h"
#include "conformance/engines/torch_eager/exact_ops.h"

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

at::Tensor Leaf(const at::Tensor& weight, at::ScalarType wide) { return weight.to(wide).requires_grad_(true); }

at::ScalarType StorageType(contract::DType dtype) {
  Check(dtype == contract::DType::kF32 || dtype == contract::DType::kBF16, "storage is fp32 or bf16");
  return dtype == contract::DType::kBF16 ? at::kBFloat16 : at::kFloat;
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
        storage(StorageType(data.spec.config.storage)),
        momentum(data.spec.config.optimizer == contract::OptimizerKind::kModularMomentum),
        decoder(data.spec.model, storage) {
    at::set_num_threads(1);
    for (size_t i = 0; i < data.parameters.size(); ++i) {
      const int64_t rows = data.parameters[i].rows, cols = data.parameters[i].cols;
      weights.push_back(Leaf(Copy(data.state[i].weight, rows, cols), WideType(storage)));
      masters.push_back(Copy(data.state[i].master, rows, cols));
      if (momentum) moments.push_back(Copy(data.state[i].moment, rows, cols));
    }
  }

  std::vector<LayerDropout> Dropout(int64_t step) const {
    std::vector<LayerDropout> masks;
    if (!data.spec.model.dropout) return masks;
    const std::array<int64_t, 3> shape = {data.batches.batch, data.batches.positions, data.spec.model.width};
    const int64_t num_elems = shape[0] * shape[1] * shape[2];
    const auto twice_mask = [&](contract::Site site, int64_t layer) {
      std::vector<float> values = TwiceKeepMask(data.spec.seed, site, step, layer, num_elems);
      return at::from_blob(values.data(), shape, at::kFloat).to(storage, /*non_blocking=*/false, /*copy=*/true);
    };
    for (int64_t l = 0; l < data.spec.model.layers; ++l) {
      masks.push_back({twice_mask(contract::Site::kDropoutAttention, l), twice_mask(contract::Site::kDropoutMlp, l)});
    }
    return masks;
  }

  void Update(size_t i) {
    const int64_t modulus = data.spec.model.master_modulus();
    if (momentum) {
      std::tie(moments[i], masters[i]) = ModularMomentum(gradients[i], moments[i], masters[i], counter, modulus);
    } else {
      masters[i] = ModularSgd(gradients[i], masters[i], modulus);
    }
    weights[i] = Leaf(WorkingWeight(masters[i], data.spec.model.weight_bound), WideType(storage));
  }

  const contract::CaseData& data;
  at::ScalarType storage;
  bool momentum;
  Decoder decoder;
  int64_t counter = 0;  // finished steps, then the number t of the step under way
  at::Tensor loss;
  std::vector<at::Tensor> weights;    // wide leaves
  std::vector<at::Tensor> gradients;  // int64
  std::vector<at::Tensor> masters;    // int64
  std::vector<at::Tensor> moments;    // int64; none with ModularSGD
};

Trainer::Trainer(const contract::CaseData& data) : state_(std::make_unique<State>(data)) {}

Trainer::~Trainer() = default;

StepLoss Trainer::Forward(int64_t step) {
  const contract::Batches& batches = state_->data.batches;
  const StepBatch batch = {StepOf(batches.tokens, batches, step), StepOf(batches.labels, batches, step),
                           StepOf(batches.loss_weights, batches, step)};
  const int64_t num_weighted = batch.loss_weights.ne(0).sum().item<int64_t>();
  if (num_weighted == 0) {
    contract::Fail(contract::ErrorCode::kInvalidArgument,
                   "batches: step " + std::to_string(step) + " has no token with a loss weight other than 0");
  }
  state_->loss = state_->decoder.Loss(state_->weights, batch, state_->Dropout(step));
  return {state_->loss.item<double>(), num_weighted};
}

void Trainer::Backward() {
  const std::vector<at::Tensor> gradients = torch::autograd::grad({state_->loss}, state_->weights);
  state_->loss.reset();
  state_->gradients.clear();
  for (size_t i = 0; i < gradients.size(); ++i) {
    state_->gradients.push_back(Integers(gradients[i], state_->data.parameters[i].name));
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
