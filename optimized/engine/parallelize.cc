// SPDX-License-Identifier: Apache-2.0
// See parallelize.h. Each step below relies on those before it; later techniques have their place in this list.
#include "optimized/engine/parallelize.h"

#include <string>
#include <vector>

#include "conformance/contract/error.h"
#include "kernels/bf16.h"
#include "kernels/cast/cast.h"
#include "optimized/backend/cpu_backend.h"
#include "optimized/model/exact_model.h"

namespace plumbline::optimized {
namespace {

using contract::DType;

[[noreturn]] void Unsupported(const std::string& message) {
  contract::Fail(contract::ErrorCode::kUnsupported, message);
}

void RequireSupported(const contract::Case& spec) {
  const contract::RunConfig& config = spec.config;
  if (!spec.model.is_exact()) Unsupported("family is " + std::string(spec.model.family()) + "; supported: exact");
  if (config.zero_stage > 2) {
    Unsupported("zero_optimization.stage is " + std::to_string(config.zero_stage) + "; supported: 0, 1, 2");
  }
  if (config.storage != DType::kF32 && config.storage != DType::kBF16) {
    Unsupported("storage type is " + std::string(contract::Name(config.storage)) + "; supported: F32, BF16");
  }
  if (spec.perturbation) Unsupported("perturbation is a feature of the reference; supported: none");
}

BucketPlan MakeBuckets(const contract::CaseData& data) {
  std::vector<int64_t> numels;
  for (const contract::ParameterSpec& parameter : data.parameters) numels.push_back(parameter.numel());
  return PlanBuckets(numels, data.spec.config.reduce_bucket_elems, data.spec.config.data_degree);
}

void LoadWeights(const contract::CaseData& data, const BucketPlan& buckets, const FlatBuffer& weights) {
  for (const contract::ParameterSpec& parameter : data.parameters) {
    const std::vector<int64_t>& values = data.state[parameter.tensor_id].weight;
    const std::vector<float> wide(values.begin(), values.end());
    const ParameterPlace& place = buckets.places[parameter.tensor_id];
    if (weights.dtype() == DType::kBF16) {
      kernels::Cast<float, kernels::BFloat16>(wide, weights.Span<kernels::BFloat16>(place.flat_offset, place.numel));
    } else {
      kernels::Cast<float, float>(wide, weights.Span<float>(place.flat_offset, place.numel));
    }
  }
}

std::unique_ptr<GradientReducer> MakeReducer(const Training& training, int64_t zero_stage) {
  const ReducerInputs inputs{training.buckets, training.shard, *training.backend, *training.communicator,
                             training.timeout};
  switch (zero_stage) {
    case 0:
      return MakeAllReduceReducer(inputs);
    case 1:
      return MakeReduceScatterReducer(inputs);
    case 2:
      return MakeShardedGradientReducer(inputs);
    default:
      contract::Fail(contract::ErrorCode::kInternal, "an unsupported stage was refused before");
  }
}

ParameterMemory MakeParameterMemory(const Training& training) {
  ParameterMemory memory;
  for (const ParameterPlace& place : training.buckets.places) {
    memory.weights.push_back(training.weights->Range(place.flat_offset, place.numel).data);
  }
  memory.gradients = training.reducer->ParameterGradients();
  return memory;
}

}  // namespace

std::unique_ptr<Training> Parallelize(const contract::CaseData& data, Communicator& communicator) {
  RequireSupported(data.spec);
  const contract::RunConfig& config = data.spec.config;
  auto training = std::make_unique<Training>();
  training->data = &data;
  training->communicator = &communicator;
  training->timeout = std::chrono::duration<double>(data.spec.timeout_s);

  // 1. Device, in the thread that will use it.
  training->backend = MakeCpuBackend();
  // 2. Buckets: fixed by the parameters and the world alone, hence equal on all ranks and in all stages.
  training->buckets = MakeBuckets(data);
  // 3. ZeRO: who updates what. Stage 0 is the case of one shard, which every rank holds and updates in the same way.
  const bool is_sharded = config.zero_stage >= 1;
  training->shard =
      PlanShard(training->buckets, is_sharded ? config.data_degree : 1, is_sharded ? communicator.rank() : 0);
  training->gathers_weights = is_sharded;
  // 4. Precision: weights and activations in storage type; gradients, moments and master weights in F32.
  training->weights = std::make_unique<FlatBuffer>(*training->backend, training->buckets.total_elems, config.storage);
  LoadWeights(data, training->buckets, *training->weights);
  // 5. Data parallelism: how gradients of all ranks and micro-batches become one.
  training->reducer = MakeReducer(*training, config.zero_stage);
  // 6. The optimizer, on this rank's shard.
  training->optimizer = std::make_unique<ShardedOptimizer>(data, training->shard, *training->backend);
  // 7. The model last: it sees memory and micro-batches, none of the above.
  training->model = MakeExactModel(data.spec.model.exact(), config.storage, data.spec.seed, config.micro_batch_size,
                                   MakeParameterMemory(*training), *training->backend);
  return training;
}

}  // namespace plumbline::optimized
