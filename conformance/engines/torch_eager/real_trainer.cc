// SPDX-License-Identifier: Apache-2.0
// Implementation of real_trainer.h: leaves in storage type for autograd, fp32 master weights for the optimizer.
#include "conformance/engines/torch_eager/real_trainer.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>

#include <cmath>
#include <cstring>
#include <optional>
#include <string>

#include "conformance/contract/error.h"
#include "conformance/engines/torch_eager/dropout_masks.h"
#include "conformance/engines/torch_eager/history_clipping.h"
#include "conformance/engines/torch_eager/loss_scaler.h"
#include "conformance/engines/torch_eager/optimizer.h"
#include "conformance/engines/torch_eager/padding.h"
#include "conformance/engines/torch_eager/real_models.h"
#include "conformance/engines/torch_eager/schedule.h"
#include "conformance/engines/torch_eager/storage_type.h"

namespace plumbline::conformance::torch_eager {
namespace {

using contract::Site;
using contract::TensorKind;

// A view: the values must outlive it.
at::Tensor View(const std::vector<float>& values, const std::vector<int64_t>& shape) {
  return at::from_blob(const_cast<float*>(values.data()), shape, at::kFloat);
}

contract::DType TypeOf(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kDouble:
      return contract::DType::kF64;
    case at::kFloat:
      return contract::DType::kF32;
    case at::kBFloat16:
      return contract::DType::kBF16;
    case at::kHalf:
      return contract::DType::kF16;
    default:
      contract::Fail(contract::ErrorCode::kInternal, "a tensor of a type that no case has");
  }
}

contract::HostTensor ToHost(const std::string& name, const at::Tensor& tensor) {
  const at::Tensor values = tensor.detach().contiguous();
  contract::HostTensor host;
  host.name = name;
  host.dtype = TypeOf(values);
  host.shape = {values.numel()};
  host.data.resize(values.nbytes());
  std::memcpy(host.data.data(), values.const_data_ptr(), values.nbytes());
  return host;
}

// The norm of each unit of a parameter, in fp64, and in a shape that broadcasts to the parameter's.
at::Tensor UnitNorms(const at::Tensor& x, contract::UnitShape units) {
  const at::Tensor squares = x.to(at::kDouble).square();
  switch (units) {
    case contract::UnitShape::kWhole:
      return squares.sum().sqrt();
    case contract::UnitShape::kRows:
      return squares.sum(/*dim=*/1, /*keepdim=*/true).sqrt();
    case contract::UnitShape::kColumns:
      return squares.sum(/*dim=*/0, /*keepdim=*/true).sqrt();
  }
  contract::Fail(contract::ErrorCode::kInternal, "a shape of units without a norm");
}

// Source: Brock et al. 2021, "High-Performance Large-Scale Image Recognition Without Normalization", eq. 3.
at::Tensor ClippedUnits(const contract::AdaptiveClipping& clipping, contract::UnitShape units,
                        const at::Tensor& gradient, const at::Tensor& master) {
  const at::Tensor norms = UnitNorms(gradient, units);
  const at::Tensor limits = UnitNorms(master, units).clamp_min(clipping.eps) * clipping.ratio;
  // A factor of 1 keeps the bits of units that are within their limits.
  const at::Tensor factors = at::where(norms > limits, limits / norms, 1.0);
  return gradient * factors.to(gradient.scalar_type());
}

}  // namespace

struct RealTrainer::State {
  explicit State(const contract::CaseData& case_data)
      : data(case_data),
        spec(data.spec.model.real()),
        storage(data.spec.config.storage),
        tokens(WithFilledPadding(data.batches, data.batches.tokens)),
        labels(WithFilledPadding(data.batches, data.batches.labels)),
        norm_history(data.norm_history),
        loss_scaler(data.loss_scaler) {
    at::set_num_threads(1);
    const contract::RunConfig& config = data.spec.config;
    ParametersOfGroups parameters_of_group(config.groups.size() + 1);
    for (size_t i = 0; i < data.parameters.size(); ++i) {
      const contract::ParameterSpec& parameter = data.parameters[i];
      masters.push_back(ToWide(View(data.real_state[i].master, parameter.shape()), storage));
      weights.push_back(Leaf(i));
      gradients.emplace_back();
      clipped.push_back(IsClipped(config, parameter.name));
      if (!parameter.frozen) parameters_of_group[GroupOf(config, parameter.name)].push_back(masters[i]);
    }
    optimizer = MakeOptimizer(config, parameters_of_group);
    for (size_t i = 0; i < data.parameters.size(); ++i) {
      if (data.parameters[i].frozen) continue;
      optimizer->Resume(masters[i], data.num_updates, Initial(i, TensorKind::kMoment),
                        Initial(i, TensorKind::kSecondMoment));
    }
  }

  at::Tensor Leaf(size_t i) const {
    return ToStorage(masters[i].detach(), storage).requires_grad_(!data.parameters[i].frozen);
  }

  // What the loss of this step is multiplied by before backward.
  double LossScale() const {
    const contract::RunConfig& config = data.spec.config;
    return contract::HasDynamicLossScale(config) ? loss_scaler.scale : static_cast<double>(config.loss_scale);
  }

  // The moment with which the case begins; undefined where there is none.
  at::Tensor Initial(size_t i, TensorKind kind) const {
    const contract::RealParameterState& state = data.real_state[i];
    const std::vector<float>& values = kind == TensorKind::kMoment ? state.moment : state.second_moment;
    return values.empty() ? at::Tensor() : ToWide(View(values, data.parameters[i].shape()), storage);
  }

  // The samples of a micro-batch, int64 [m, T].
  at::Tensor Samples(const std::vector<int32_t>& values, int64_t step, int64_t micro_batch) const {
    const int64_t m = data.spec.config.micro_batch_size;
    int32_t* first = const_cast<int32_t*>(values.data()) + data.batches.Index(step, micro_batch * m, 0);
    return at::from_blob(first, {m, spec.positions}, at::kInt).to(at::kLong);
  }

  at::Tensor Mask(Site site, int64_t step, int64_t layer, int64_t micro_batch,
                  const std::vector<int64_t>& shape) const {
    const int64_t numel = c10::multiply_integers(shape);
    const std::vector<float> mask =
        KeepMask(data.spec.seed, site, step, layer, contract::DropThreshold(spec.dropout), micro_batch * numel, numel);
    return ToStorage(View(mask, shape), storage);
  }

  DropMasks Masks(int64_t step, int64_t micro_batch) const {
    DropMasks masks;
    if (spec.dropout == 0) return masks;
    const int64_t m = data.spec.config.micro_batch_size;
    const std::vector<int64_t> stream = {m, spec.positions, spec.width};
    masks.embedding.push_back(Mask(Site::kDropoutEmbedding, step, 0, micro_batch, stream));
    for (int64_t l = 0; l < spec.layers; ++l) {
      masks.scores.push_back(
          Mask(Site::kDropoutScores, step, l, micro_batch, {m, spec.heads, spec.positions, spec.positions}));
      masks.attention_out.push_back(Mask(Site::kDropoutAttentionOut, step, l, micro_batch, stream));
      masks.mlp_out.push_back(Mask(Site::kDropoutMlpOut, step, l, micro_batch, stream));
    }
    return masks;
  }

  // Over all trained parameters but exempt ones, which count only where they are not finite. The squares are summed in
  // fp64, where those of fp32 numbers cannot overflow: the norm is finite exactly if every gradient is.
  double GradientNorm() const {
    double sum = 0;
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (!gradients[i].defined()) continue;
      const auto squares = gradients[i].to(at::kDouble).square().sum().item<double>();
      if (clipped[i] || !std::isfinite(squares)) sum += squares;
    }
    return std::sqrt(sum);
  }

  // What clipping by a norm of the whole multiplies gradients by if it is below 1.
  double ClippingFactor(double norm) const {
    const contract::RunConfig& config = data.spec.config;
    double largest = config.gradient_clipping;
    if (contract::HasNormHistory(config)) {
      const std::optional<double> threshold = Threshold(config.adaptive_clipping, norm_history);
      if (!threshold) return 1;
      largest = *threshold;
    } else if (largest == 0) {
      return 1;
    }
    return largest / (norm + 1e-6);
  }

  at::Tensor Clipped(size_t i, double factor) const {
    const contract::AdaptiveClipping& clipping = data.spec.config.adaptive_clipping;
    if (clipping.kind == contract::AdaptiveClipping::Kind::kUnit) {
      return ClippedUnits(clipping, data.parameters[i].units, gradients[i], masters[i]);
    }
    return factor < 1 ? gradients[i] * factor : gradients[i];
  }

  // Gives the optimizer its gradients.
  void Clip(double norm) {
    const double factor = ClippingFactor(norm);
    for (size_t i = 0; i < masters.size(); ++i) {
      if (gradients[i].defined()) masters[i].mutable_grad() = clipped[i] ? Clipped(i, factor) : gradients[i];
    }
  }

  const contract::CaseData& data;
  const contract::RealSpec& spec;
  const contract::DType storage;  // of weights and activations; gradients, master weights and moments are wide
  const std::vector<int32_t> tokens;
  const std::vector<int32_t> labels;
  std::unique_ptr<Optimizer> optimizer;
  at::Tensor loss;
  int64_t micro_batch = 0;             // of `loss`
  contract::NormHistory norm_history;  // of clipping by history
  contract::LossScaler loss_scaler;    // of a dynamic loss scale
  std::vector<at::Tensor> masters;
  std::vector<at::Tensor> weights;    // leaves
  std::vector<at::Tensor> gradients;  // before clipping; undefined for frozen parameters
  std::vector<bool> clipped;          // false: exempt
};

RealTrainer::RealTrainer(const contract::CaseData& data) : state_(std::make_unique<State>(data)) {}

RealTrainer::~RealTrainer() = default;

int64_t RealTrainer::NumTokens(int64_t step) const {
  const contract::Batches& batches = state_->data.batches;
  int64_t num_tokens = 0;
  for (int64_t i = batches.Index(step, 0, 0); i < batches.Index(step + 1, 0, 0); ++i) {
    num_tokens += batches.loss_weights[i] != 0;
  }
  return num_tokens;
}

double RealTrainer::Forward(int64_t step, int64_t micro_batch) {
  State& state = *state_;
  const contract::Batches& batches = state.data.batches;
  int64_t sum_weights = 0;
  for (int64_t i = batches.Index(step, 0, 0); i < batches.Index(step + 1, 0, 0); ++i) {
    sum_weights += batches.loss_weights[i];
  }
  if (sum_weights == 0) {
    contract::Fail(contract::ErrorCode::kInvalidArgument,
                   "batches: step " + std::to_string(step) + " has no token with a loss weight other than 0");
  }
  const at::Tensor ce =
      ModelCrossEntropy(state.data.spec.model, state.weights, state.Samples(state.tokens, step, micro_batch),
                        state.Samples(state.labels, step, micro_batch), state.Masks(step, micro_batch));
  state.loss = (ce * state.Samples(batches.loss_weights, step, micro_batch)).sum() / sum_weights;
  state.micro_batch = micro_batch;
  return state.loss.item<double>();
}

void RealTrainer::Backward() {
  State& state = *state_;
  const double loss_scale = state.LossScale();
  const bool begins_sum = state.micro_batch == 0;
  const bool ends_sum = state.micro_batch + 1 == state.data.spec.config.accumulation_steps;
  std::vector<size_t> trained;
  std::vector<at::Tensor> leaves;
  for (size_t i = 0; i < state.weights.size(); ++i) {
    if (state.data.parameters[i].frozen) continue;
    trained.push_back(i);
    leaves.push_back(state.weights[i]);
  }
  // With everything that takes part frozen there is nothing to differentiate.
  std::vector<at::Tensor> gradients(leaves.size());
  if (state.loss.requires_grad()) {
    // The loss is wide, and so is its scale: a scale of 2^16 has no value in fp16, its gradients may.
    gradients = torch::autograd::grad({state.loss}, leaves, {at::full_like(state.loss, loss_scale)},
                                      /*retain_graph=*/std::nullopt, /*create_graph=*/false, /*allow_unused=*/true);
  }
  state.loss.reset();
  for (size_t j = 0; j < trained.size(); ++j) {
    // An unused parameter has no gradient in PyTorch; the document's is zero.
    const at::Tensor gradient =
        gradients[j].defined() ? ToWide(gradients[j]) : at::zeros_like(state.masters[trained[j]]);
    at::Tensor& sum = state.gradients[trained[j]];
    sum = begins_sum ? gradient : sum + gradient;
    if (ends_sum) sum = sum / loss_scale;
  }
}

contract::RealStep RealTrainer::Update(int64_t step) {
  State& state = *state_;
  const contract::RunConfig& config = state.data.spec.config;
  contract::RealStep report;
  report.lr = LearningRates(config, step);
  report.gradient_norm = state.GradientNorm();
  report.skipped = !std::isfinite(report.gradient_norm);
  if (!report.skipped) {
    state.Clip(report.gradient_norm);
    state.optimizer->Step(report.lr, BetasAt(config, step));
    for (size_t i = 0; i < state.masters.size(); ++i) state.weights[i] = state.Leaf(i);
  }
  if (contract::HasNormHistory(config)) {
    if (!report.skipped) {
      state.norm_history = WithNorm(config.adaptive_clipping, state.norm_history, report.gradient_norm);
    }
    report.norm_history = state.norm_history;
  }
  if (contract::HasDynamicLossScale(config)) {
    state.loss_scaler = AfterStep(config.dynamic_loss_scale, state.loss_scaler, report.skipped);
    report.loss_scaler = state.loss_scaler;
  }
  return report;
}

contract::HostTensor RealTrainer::Values(TensorKind kind, size_t index) const {
  const State& state = *state_;
  at::Tensor tensor;
  switch (kind) {
    case TensorKind::kGradient:
      tensor = state.gradients.at(index);
      break;
    case TensorKind::kMoment:
    case TensorKind::kSecondMoment:
      tensor = state.Initial(index, kind);
      if (tensor.defined()) {
        const at::Tensor held = state.optimizer->Moment(state.masters.at(index), kind == TensorKind::kSecondMoment);
        if (held.defined()) tensor = held;
      }
      break;
    case TensorKind::kMaster:
      tensor = state.masters.at(index);
      break;
    case TensorKind::kWeight:
      tensor = state.weights.at(index);
      break;
  }
  const std::string& name = state.data.parameters.at(index).name;
  return tensor.defined() ? ToHost(name, tensor)
                          : contract::HostTensor{.name = name, .dtype = {}, .shape = {0}, .data = {}};
}

}  // namespace plumbline::conformance::torch_eager
