// SPDX-License-Identifier: Apache-2.0
// LAMB: moments and the sums of squares of what the rank holds, one all-reduce for the norms of all parameters, then
// the step. Source: docs/semantics.md, "One step"; docs/formats.md, "Buckets and the ledger".
#include <cmath>

#include "conformance/contract/error.h"
#include "kernels/lamb/lamb.h"
#include "optimized/backend/storage_types.h"
#include "optimized/engine/real_optimizer.h"
#include "optimized/optimizer/lamb_ratio.h"

namespace plumbline::optimized {
namespace {

int64_t NumTrained(const contract::CaseData& data) {
  int64_t count = 0;
  for (const contract::ParameterSpec& parameter : data.parameters) count += parameter.frozen ? 0 : 1;
  return count;
}

class LambOptimizer final : public RealOptimizer {
 public:
  LambOptimizer(const contract::CaseData& data, const ShardPlan& shard, const SumReduction& reduction, Backend& backend)
      : RealOptimizer(data, shard, backend), sums_("norms of LAMB", 2 * NumTrained(data), reduction) {
    int64_t count = 0;
    for (const contract::ParameterSpec& parameter : data.parameters) {
      sums_of_.push_back(parameter.frozen ? kNoSums : 2 * count++);
    }
  }

  void Step(const UpdateNumbers& numbers, const GradientOf& gradient, const WeightOf& weight) override {
    sums_.Clear();
    for (const ShardSlice& slice : shard().slices) {
      UpdateMoments(numbers, slice, gradient(slice));
    }
    sums_.Reduce();
    for (const ShardSlice& slice : shard().slices) {
      const Buffer buffer = weight(slice);
      contract::Check(buffer.dtype == config_.storage && buffer.elems == slice.elems(), "a slice's weights fit it");
      VisitStorage(buffer.dtype, [&](auto type) { StepSlice<decltype(type)>(numbers, slice, buffer); });
    }
  }

  void Skip() override {
    sums_.Clear();
    sums_.Reduce();
  }

 private:
  static constexpr int64_t kNoSums = -1;

  kernels::SquareSum& OfMaster(const ShardSlice& slice) { return sums_[sums_of_[slice.parameter]]; }
  kernels::SquareSum& OfDirection(const ShardSlice& slice) { return sums_[sums_of_[slice.parameter] + 1]; }

  void UpdateMoments(const UpdateNumbers& numbers, const ShardSlice& slice, std::span<const float> gradient) {
    kernels::LambOptions options = OptionsOf(slice, numbers);
    const bool counts = sums_.Counts(slice);
    kernels::SquareSum not_counted;
    ForEachClippedPart(numbers, slice, gradient, [&](int64_t offset, std::span<const float> part, double scale) {
      options.gradient_scale = scale;
      const auto of = [&](std::span<float> whole) { return whole.subspan(offset, part.size()); };
      kernels::LambMoments(options, slice.begin + offset, part, of(Moment(slice)), of(SecondMoment(slice)),
                           of(Master(slice)), counts ? OfMaster(slice) : not_counted,
                           counts ? OfDirection(slice) : not_counted);
    });
  }

  template <typename T>
  void StepSlice(const UpdateNumbers& numbers, const ShardSlice& slice, const Buffer& buffer) {
    const std::span<T> weight(static_cast<T*>(buffer.data), static_cast<size_t>(buffer.elems));
    const double ratio =
        LambRatio(config_.params, std::sqrt(OfMaster(slice).Total()), std::sqrt(OfDirection(slice).Total()));
    kernels::LambStep<T>(OptionsOf(slice, numbers), ratio, Moment(slice), SecondMoment(slice), Master(slice), weight);
  }

  kernels::LambOptions OptionsOf(const ShardSlice& slice, const UpdateNumbers& numbers) const {
    const Rates rates = RatesOf(slice, numbers);
    return {.lr = rates.lr,
            .beta1 = rates.betas.first,
            .beta2 = rates.betas.second,
            .epsilon = config_.params.eps,
            .weight_decay = rates.weight_decay,
            .t = numbers.t};
  }

  std::vector<int64_t> sums_of_;  // by canonical index: of the master weights; of the direction is the next
  ReducedSums sums_;
};

}  // namespace

std::unique_ptr<ShardedOptimizer> MakeLambOptimizer(const contract::CaseData& data, const ShardPlan& shard,
                                                    const SumReduction& reduction, Backend& backend) {
  return std::make_unique<LambOptimizer>(data, shard, reduction, backend);
}

}  // namespace plumbline::optimized
