// SPDX-License-Identifier: Apache-2.0
// See real_optimizer.h; AdamW, Adam, Lion and SGD. Kernels are called slice by slice, so that padding is neither read
// nor written; the number of the update is the engine's, so that no group and no shard counts for itself.
#include "optimized/engine/real_optimizer.h"

#include <algorithm>

#include "conformance/contract/error.h"
#include "conformance/contract/run_config.h"
#include "kernels/adamw/adamw.h"
#include "kernels/lion/lion.h"
#include "kernels/sgd/sgd.h"
#include "optimized/backend/storage_types.h"
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
      VisitStorage(buffer.dtype,
                   [&](auto type) { StepSlice<decltype(type)>(numbers, slice, gradient(slice), buffer); });
    }
  }

 private:
  // Consecutive elements of a slice. What the optimizer does not have is empty.
  template <typename T>
  struct Part {
    std::span<const float> gradient;
    double gradient_scale = 1;
    std::span<float> moment, second_moment, master;
    std::span<T> weight;
  };

  template <typename T>
  void StepSlice(const UpdateNumbers& numbers, const ShardSlice& slice, std::span<const float> gradient,
                 const Buffer& buffer) {
    const std::span<T> weight(static_cast<T*>(buffer.data), static_cast<size_t>(buffer.elems));
    const std::span<float> moment = has_moment() ? Moment(slice) : std::span<float>();
    const std::span<float> second_moment = has_second_moment() ? SecondMoment(slice) : std::span<float>();
    const Rates rates = RatesOf(slice, numbers);
    ForEachClippedPart(numbers, slice, gradient, [&](int64_t offset, std::span<const float> part, double scale) {
      const auto of = [&](auto whole) { return whole.empty() ? whole : whole.subspan(offset, part.size()); };
      StepPart<T>(numbers, rates, {part, scale, of(moment), of(second_moment), of(Master(slice)), of(weight)});
    });
  }

  template <typename T>
  void StepPart(const UpdateNumbers& numbers, const Rates& rates, const Part<T>& part) const {
    switch (config_.optimizer) {
      case OptimizerKind::kSgd:
        return kernels::SgdStep<T>(SgdOptionsOf(rates, numbers.t, part.gradient_scale), part.gradient, part.moment,
                                   part.master, part.weight);
      case OptimizerKind::kLion:
        return kernels::LionStep<T>(LionOptionsOf(rates, part.gradient_scale), part.gradient, part.moment, part.master,
                                    part.weight);
      default: {
        const kernels::AdamWOptions options = AdamWOptionsOf(rates, numbers.t, part.gradient_scale);
        kernels::AdamWStep<T>(options, part.gradient, part.moment, part.second_moment, part.master, part.weight);
      }
    }
  }

  kernels::SgdOptions SgdOptionsOf(const Rates& rates, int64_t t, double gradient_scale) const {
    return {.lr = rates.lr,
            .momentum = config_.params.momentum,
            .nesterov = config_.params.nesterov,
            .weight_decay = rates.weight_decay,
            .t = t,
            .gradient_scale = gradient_scale};
  }

  kernels::LionOptions LionOptionsOf(const Rates& rates, double gradient_scale) const {
    return {.lr = rates.lr,
            .beta1 = rates.betas.first,
            .beta2 = rates.betas.second,
            .weight_decay = rates.weight_decay,
            .gradient_scale = gradient_scale};
  }

  kernels::AdamWOptions AdamWOptionsOf(const Rates& rates, int64_t t, double gradient_scale) const {
    return {.lr = rates.lr,
            .beta1 = rates.betas.first,
            .beta2 = rates.betas.second,
            .epsilon = config_.params.eps,
            .weight_decay = rates.weight_decay,
            .decoupled = config_.optimizer == OptimizerKind::kAdamW,
            .t = t,
            .gradient_scale = gradient_scale};
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
  return {LearningRate(config_, group.lr, step), BetasOf(config_, group.betas, step), group.weight_decay};
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
  contract::Fail(contract::ErrorCode::kInvalidArgument,
                 "optimizer.type is " + std::string(contract::Name(data.spec.config.optimizer)) +
                     "; allowed in the real families: AdamW, SGD, Adam, Lion, Lamb");
}

}  // namespace plumbline::optimized
