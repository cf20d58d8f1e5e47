// SPDX-License-Identifier: Apache-2.0
// The optimizers of family exact. Kernels are called slice by slice, so that padding is neither read nor written.
#include "conformance/contract/error.h"
#include "conformance/contract/run_config.h"
#include "kernels/modular_momentum/modular_momentum.h"
#include "kernels/modular_sgd/modular_sgd.h"
#include "optimized/backend/storage_types.h"
#include "optimized/engine/sharded_optimizer.h"

namespace plumbline::optimized {
namespace {

void CopySlice(const std::vector<int64_t>& values, const ShardSlice& slice, std::span<float> memory) {
  for (int64_t i = 0; i < slice.elems(); ++i) memory[i] = static_cast<float>(values.at(slice.begin + i));
}

bool HasMoment(contract::OptimizerKind kind) { return kind == contract::OptimizerKind::kModularMomentum; }

class ModularOptimizer final : public ShardedOptimizer {
 public:
  ModularOptimizer(const contract::CaseData& data, const ShardPlan& shard, Backend& backend)
      : ShardedOptimizer(shard, HasMoment(data.spec.config.optimizer) ? 1 : 0, backend),
        storage_(data.spec.config.storage),
        weight_bound_(data.spec.model.exact().weight_bound) {
    for (const ShardSlice& slice : shard.slices) {
      const contract::ParameterState& state = data.state[slice.parameter];
      CopySlice(state.master, slice, Master(slice));
      if (has_moment()) CopySlice(state.moment, slice, Moment(slice));
    }
  }

  void Step(const UpdateNumbers& numbers, const GradientOf& gradient, const WeightOf& weight) override {
    contract::Check(numbers.gradient_scale == 1, "gradients of family exact are not clipped");
    VisitStorage(storage_, [&](auto type) { StepTyped<decltype(type)>(numbers.t, gradient, weight); });
  }

 private:
  template <typename T>
  void StepTyped(int64_t t, const GradientOf& gradient, const WeightOf& weight_of) {
    for (const ShardSlice& slice : shard().slices) {
      const Buffer buffer = weight_of(slice);
      contract::Check(buffer.dtype == storage_ && buffer.elems == slice.elems(), "a slice's weights fit it");
      const std::span<T> weight(static_cast<T*>(buffer.data), static_cast<size_t>(buffer.elems));
      if (has_moment()) {
        kernels::ModularMomentumStep<T>(t, weight_bound_, gradient(slice), Moment(slice), Master(slice), weight);
      } else {
        kernels::ModularSgdStep<T>(weight_bound_, gradient(slice), Master(slice), weight);
      }
    }
  }

  contract::DType storage_;
  int64_t weight_bound_;
};

}  // namespace

std::unique_ptr<ShardedOptimizer> MakeModularOptimizer(const contract::CaseData& data, const ShardPlan& shard,
                                                       Backend& backend) {
  return std::make_unique<ModularOptimizer>(data, shard, backend);
}

}  // namespace plumbline::optimized
