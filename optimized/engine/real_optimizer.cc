// SPDX-License-Identifier: Apache-2.0
// See real_optimizer.h; AdamW, Adam, Lion and SGD. Kernels are called slice by slice, so that padding is neither read
// nor written; the number of the update is the engine's, so that no group and no shard counts for itself.
#include "optimized/engine/real_optimizer.h"

#include <algorithm>

#include "conformance/contract/error.h"
#include "conformance/contract/run_config.h"
#include "kernels/adamw/adamw.h"
#include "kernels/bf16.h"
#include "kernels/lion/lion.h"
#include "kernels/sgd/sgd.h"
#include "optimized/optimizer/schedule.h"

namespace plumbline::optimized {
namespace {

using contract::OptimizerKind;

int64_t NumMoments(const contract::RunConfig& config) {
  return (contract::HasMoment(config) ? 1 : 0) + (contract::HasSecondMoment(config) ? 1 : 0);
}

void CopySlice(const std::vector<float>& values, const ShardSlice& slice, std::span<float> memory) {
  contract::Check(static_cast<int64_t>(values.size()) >= slice.end, "a case has the state of every trained parameter");
  std::copy_n(values.begin() + slice.begin, slice.elems(), memory.begin());
}

// The update of an element depends on nothing but the element.
class ElementOptimizer final : public RealOptimizer {
 public:
  ElementOptimizer(const contract::CaseData& data, const ShardPlan& shard, Backend& backend)
      : RealOptimizer(data, shard, backend) {}

  void Step(const UpdateNumbers& numbers, const GradientOf& gradient, const WeightOf& weight) override {
    for (const ShardSlice& slice : shard().slices) {
      const Buffer buffer = weight(slice);
      contract::Check(buffer.dtype == config_.storage && buffer.elems == slice.elems(), "a slice's weights fit it");
      if (config_.storage == contract::DType::kBF16) {
        StepSlice<kernels::BFloat16>(numbers, slice, gradient(slice), buffer);
      } else {
        StepSlice<float>(numbers, slice, gradient(slice), buffer);
      }
    }
  }

 private:
  template <typename T>
  void StepSlice(const UpdateNumbers& numbers, const ShardSlice& slice, std::span<const float> gradient,
                 const Buffer& buffer) {
    const std::span<T> weight(static_cast<T*>(buffer.data), static_cast<size_t>(buffer.elems));
    const Rates rates = RatesOf(slice, numbers);
    switch (config_.optimizer) {
      case OptimizerKind::kSgd: {
        const std::span<float> momentum = has_moment() ? Moment(slice) : std::span<float>();
        return kernels::SgdStep<T>(SgdOptionsOf(rates, numbers), gradient, momentum, Master(slice), weight);
      }
      case OptimizerKind::kLion:
        return kernels::LionStep<T>(LionOptionsOf(rates), gradient, Moment(slice), Master(slice), weight);
      default: {
        const kernels::AdamWOptions options = AdamWOptionsOf(rates, numbers);
        kernels::AdamWStep<T>(options, gradient, Moment(slice), SecondMoment(slice), Master(slice), weight);
      }
    }
  }

  kernels::SgdOptions SgdOptionsOf(const Rates& rates, const UpdateNumbers& numbers) const {
    return {.lr = rates.lr,
            .momentum = config_.params.momentum,
            .nesterov = config_.params.nesterov,
            .weight_decay = rates.weight_decay,
            .t = numbers.t,
            .gradient_scale = rates.gradient_scale};
  }

  kernels::LionOptions LionOptionsOf(const Rates& rates) const {
    return {.lr = rates.lr,
            .beta1 = rates.betas.first,
            .beta2 = rates.betas.second,
            .weight_decay = rates.weight_decay,
            .gradient_scale = rates.gradient_scale};
  }

  kernels::AdamWOptions AdamWOptionsOf(const Rates& rates, const UpdateNumbers& numbers) const {
    return {.lr = rates.lr,
            .beta1 = rates.betas.first,
            .beta2 = rates.betas.second,
            .epsilon = config_.params.eps,
            .weight_decay = rates.weight_decay,
            .decoupled = config_.optimizer == OptimizerKind::kAdamW,
            .t = numbers.t,
            .gradient_scale = rates.gradient_scale};
  }
};

}  // namespace

RealOptimizer::RealOptimizer(const contract::CaseData& data, const ShardPlan& shard, Backend& backend)
    : ShardedOptimizer(shard, NumMoments(data.spec.config), backend), config_(data.spec.config) {
  for (const contract::ParameterSpec& parameter : data.parameters) {
    options_.push_back(OptionsOf(config_, parameter.name));
  }
  for (const ShardSlice& slice : shard.slices) {
    const contract::RealParameterState& state = data.real_state[slice.parameter];
    CopySlice(state.master, slice, Master(slice));
    if (has_moment()) CopySlice(state.moment, slice, Moment(slice));
    if (has_second_moment()) CopySlice(state.second_moment, slice, SecondMoment(slice));
  }
}

RealOptimizer::Rates RealOptimizer::RatesOf(const ShardSlice& slice, const UpdateNumbers& numbers) const {
  const int64_t step = numbers.step;
  const GroupOptions& group = options_[slice.parameter];
  return {LearningRate(config_, group.lr, step), BetasOf(config_, group.betas, step), group.weight_decay,
          group.clips ? numbers.gradient_scale : 1};
}

std::unique_ptr<ShardedOptimizer> MakeRealOptimizer(const contract::CaseData& data, const ShardPlan& shard,
                                                    const SumReduction& reduction, Backend& backend) {
  switch (data.spec.config.optimizer) {
    case OptimizerKind::kAdamW:
    case OptimizerKind::kAdam:
    case OptimizerKind::kLion:
    case OptimizerKind::kSgd:
      return std::make_unique<ElementOptimizer>(data, shard, backend);
    case OptimizerKind::kLamb:
      return MakeLambOptimizer(data, shard, reduction, backend);
    case OptimizerKind::kModularMomentum:
    case OptimizerKind::kModularSgd:
      break;
  }
  contract::Fail(contract::ErrorCode::kInvalidArgument, "optimizer.type is " +
                                                            std::string(contract::Name(data.spec.config.optimizer)) +
                                                            "; allowed in family gpt2: AdamW, SGD, Adam, Lion, Lamb");
}

}  // namespace plumbline::optimized
