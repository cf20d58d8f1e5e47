// SPDX-License-Identifier: Apache-2.0
// See sharded_optimizer.h. Kernels are called slice by slice, so that padding is neither read nor written.
#include "optimized/engine/sharded_optimizer.h"

#include "conformance/contract/error.h"
#include "conformance/contract/run_config.h"
#include "kernels/bf16.h"
#include "kernels/modular_momentum/modular_momentum.h"
#include "kernels/modular_sgd/modular_sgd.h"

namespace plumbline::optimized {
namespace {

void CopySlice(const std::vector<int64_t>& values, const ShardSlice& slice, const FlatBuffer& target) {
  const std::span<float> memory = target.Span<float>(slice.shard_offset, slice.elems());
  for (int64_t i = 0; i < slice.elems(); ++i) memory[i] = static_cast<float>(values.at(slice.begin + i));
}

bool HasMoment(contract::OptimizerKind kind) { return kind == contract::OptimizerKind::kModularMomentum; }

}  // namespace

ShardedOptimizer::ShardedOptimizer(const contract::CaseData& data, const ShardPlan& shard, Backend& backend)
    : shard_(shard),
      storage_(data.spec.config.storage),
      weight_bound_(data.spec.model.exact().weight_bound),
      has_moment_(HasMoment(data.spec.config.optimizer)),
      moment_(backend, has_moment_ ? shard.total_elems : 0, contract::DType::kF32, MemoryCategory::kOptimizerState),
      master_(backend, shard.total_elems, contract::DType::kF32, MemoryCategory::kOptimizerState) {
  for (const ShardSlice& slice : shard.slices) {
    const contract::ParameterState& state = data.state[slice.parameter];
    CopySlice(state.master, slice, master_);
    if (has_moment_) CopySlice(state.moment, slice, moment_);
  }
}

void ShardedOptimizer::Step(int64_t t, const GradientOf& gradient, const WeightOf& weight) {
  if (storage_ == contract::DType::kBF16) {
    StepTyped<kernels::BFloat16>(t, gradient, weight);
  } else {
    StepTyped<float>(t, gradient, weight);
  }
}

template <typename T>
void ShardedOptimizer::StepTyped(int64_t t, const GradientOf& gradient, const WeightOf& weight_of) {
  for (const ShardSlice& slice : shard_.slices) {
    const Buffer buffer = weight_of(slice);
    contract::Check(buffer.dtype == storage_ && buffer.elems == slice.elems(), "a slice's weights fit it");
    const std::span<T> weight(static_cast<T*>(buffer.data), static_cast<size_t>(buffer.elems));
    const std::span<float> master = master_.Span<float>(slice.shard_offset, slice.elems());
    if (has_moment_) {
      const std::span<float> moment = moment_.Span<float>(slice.shard_offset, slice.elems());
      kernels::ModularMomentumStep<T>(t, weight_bound_, gradient(slice), moment, master, weight);
    } else {
      kernels::ModularSgdStep<T>(weight_bound_, gradient(slice), master, weight);
    }
  }
}

}  // namespace plumbline::optimized
