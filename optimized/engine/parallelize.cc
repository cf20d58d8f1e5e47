// SPDX-License-Identifier: Apache-2.0
// See parallelize.h. Each step below relies on those before it; later techniques have their place in this list.
#include "optimized/engine/parallelize.h"

#include <string>
#include <vector>

#include "conformance/contract/error.h"
#include "conformance/contract/layer_stages.h"
#include "kernels/cast/cast.h"
#include "optimized/backend/counting_backend.h"
#include "optimized/backend/cpu_backend.h"
#include "optimized/backend/guarded_backend.h"
#include "optimized/backend/storage_types.h"
#include "optimized/model/exact_model.h"
#include "optimized/model/gpt2_model.h"
#include "optimized/model/llama_model.h"
#include "optimized/optimizer/parameter_groups.h"

namespace plumbline::optimized {
namespace {

using contract::DType;

[[noreturn]] void Unsupported(const std::string& message) {
  contract::Fail(contract::ErrorCode::kUnsupported, message);
}

void RequireSupported(const contract::Case& spec) {
  const contract::RunConfig& config = spec.config;
  if (config.zero_stage > 3) {
    Unsupported("zero_optimization.stage is " + std::to_string(config.zero_stage) + "; supported: 0, 1, 2, 3");
  }
  if (!IsStorageType(config.storage)) {
    Unsupported("storage type is " + std::string(contract::Name(config.storage)) + "; supported: F32, BF16, F16");
  }
  if (spec.perturbation) Unsupported("perturbation is a feature of the reference; supported: none");
}

std::vector<int64_t> Numels(const contract::CaseData& data) {
  std::vector<int64_t> numels;
  for (const contract::ParameterSpec& parameter : data.parameters) numels.push_back(parameter.numel());
  return numels;
}

std::vector<int64_t> FrozenIndices(const contract::CaseData& data) {
  std::vector<int64_t> indices;
  for (const contract::ParameterSpec& parameter : data.parameters) {
    if (parameter.frozen) indices.push_back(parameter.tensor_id);
  }
  return indices;
}

// By canonical index.
std::vector<int64_t> Stages(const contract::CaseData& data) {
  std::vector<int64_t> stages;
  for (const contract::ParameterSpec& parameter : data.parameters) {
    stages.push_back(parameter.frozen ? kFrozen : contract::StageOf(data.spec.config, parameter));
  }
  return stages;
}

// Frozen parameters are in no bucket. No bucket holds parameters of two stages, nor of two groups of ZeRO 3, so that a
// bucket is also what is gathered.
void PlanStagedBuckets(const contract::CaseData& data, const ModelOutline& outline, Training& training) {
  const contract::RunConfig& config = data.spec.config;
  const std::vector<int64_t> numels = Numels(data);
  training.frozen = PlanFrozen(numels, FrozenIndices(data));
  const StagePlan stages = PlanStages(outline.units, numels, Stages(data), config.persistence_threshold_elems);
  training.units = stages.units;
  training.buckets = PlanBuckets(numels, stages.sets, config.reduce_bucket_elems, config.data_degree);
  training.staged = StageBuckets(stages, training.buckets);
  training.gathers = PlanGathers(UsesOfStep(outline.forward, outline.backward, config.accumulation_steps),
                                 training.units.groups_of_unit, training.units.group_elems,
                                 {config.prefetch_bucket_elems, config.max_live_elems});
}

std::unique_ptr<WeightStore> MakeWeights(Training& training, const contract::RunConfig& config) {
  const WeightInputs inputs{training.buckets,       training.staged,  training.shard,
                            training.frozen,        config.storage,   *training.backend,
                            *training.communicator, training.timeout, training.memory.weights};
  return std::make_unique<WeightStore>(inputs, training.units, training.gathers);
}

std::vector<float> InitialWeights(const contract::CaseData& data, const WeightSlice& slice) {
  const auto part = [&](const auto& values) {
    const auto first = values.begin() + slice.begin;
    return std::vector<float>(first, first + slice.values.elems);
  };
  return data.spec.model.is_exact() ? part(data.state[slice.parameter].weight)
                                    : part(data.real_state[slice.parameter].master);
}

void LoadWeights(const contract::CaseData& data, const WeightStore& weights) {
  for (const WeightSlice& slice : weights.Held()) {
    const std::vector<float> wide = InitialWeights(data, slice);
    const auto elems = static_cast<size_t>(slice.values.elems);
    VisitStorage(slice.values.dtype, [&](auto type) {
      using T = decltype(type);
      kernels::Cast<float, T>(wide, std::span(static_cast<T*>(slice.values.data), elems));
    });
  }
}

std::unique_ptr<GradientReducer> MakeReducer(const Training& training, const contract::RunConfig& config) {
  const ReducerInputs inputs{
      training.buckets,       training.staged,  training.shard,      *training.backend,
      *training.communicator, training.timeout, config.overlap_comm, config.accumulation_steps > 1};
  return std::make_unique<GradientReducer>(inputs);
}

ModelOutline OutlineOf(const contract::ModelSpec& model) {
  switch (model.kind()) {
    case contract::Family::kExact:
      return ExactOutline(model.exact());
    case contract::Family::kGpt2:
      return Gpt2Outline(model.gpt2());
    case contract::Family::kLlama:
      return LlamaOutline(model.llama());
  }
  contract::Fail(contract::ErrorCode::kInternal, "a model is of a family");
}

// By canonical index: whether clipping leaves a parameter alone.
std::vector<bool> Exempt(const contract::CaseData& data) {
  std::vector<bool> exempt;
  for (const contract::ParameterSpec& parameter : data.parameters) {
    exempt.push_back(!OptionsOf(data.spec.config, parameter.name).clips);
  }
  return exempt;
}

// By canonical index.
std::vector<UnitForm> UnitForms(const contract::CaseData& data) {
  const std::vector<bool> exempt = Exempt(data);
  std::vector<UnitForm> forms;
  for (const contract::ParameterSpec& parameter : data.parameters) {
    const int64_t numel = parameter.numel();
    const bool is_clipped = !parameter.frozen && !exempt[parameter.tensor_id];
    switch (parameter.units) {
      case contract::UnitShape::kWhole:
        forms.push_back({numel, 1, numel});
        break;
      case contract::UnitShape::kRows:
        forms.push_back({numel, parameter.rows, parameter.cols});
        break;
      case contract::UnitShape::kColumns:
        forms.push_back({numel, parameter.cols, 1});
        break;
    }
    if (!is_clipped) forms.back().num_units = 0;
  }
  return forms;
}

std::unique_ptr<Model> MakeModel(const contract::Case& spec, const Training& training) {
  const contract::RunConfig& config = spec.config;
  const int64_t samples = config.micro_batch_size;
  switch (spec.model.kind()) {
    case contract::Family::kExact:
      return MakeExactModel(spec.model.exact(), {config.storage, spec.seed, samples}, training.memory,
                            *training.backend);
    case contract::Family::kGpt2:
      return MakeGpt2Model(spec.model.gpt2(), config.storage, spec.seed, samples, training.memory, *training.backend);
    case contract::Family::kLlama:
      return MakeLlamaModel(spec.model.llama(), config.storage, spec.seed, samples, training.memory, *training.backend);
  }
  contract::Fail(contract::ErrorCode::kInternal, "a model is of a family");
}

}  // namespace

std::unique_ptr<Training> Parallelize(const contract::CaseData& data, Communicator& communicator) {
  RequireSupported(data.spec);
  const contract::RunConfig& config = data.spec.config;
  auto training = std::make_unique<Training>();
  training->data = &data;
  training->communicator = &communicator;
  training->timeout = std::chrono::duration<double>(data.spec.timeout_s);

  // 1. Device, in the thread that will use it, with guards around its memory, and the books of it without them.
  training->backend =
      MakeCountingBackend(MakeGuardedBackend(MakeCpuBackend(), training->memory_guards), training->memory_ledger);
  // 2. Buckets: fixed by model, config and world alone, hence equal on all ranks.
  PlanStagedBuckets(data, OutlineOf(data.spec.model), *training);
  // 3. ZeRO: who updates what. Stage 0 is the case of one part, which every rank holds and updates in the same way.
  training->shard = PlanShard(training->buckets, training->staged.Degrees(config.data_degree), communicator.rank());
  // 4. Precision: weights and activations in storage type; gradients, moments and master weights in F32.
  training->memory.weights.resize(data.parameters.size(), nullptr);
  training->weights = MakeWeights(*training, config);
  training->memory.hooks = training->weights.get();
  LoadWeights(data, *training->weights);
  // 5. Data parallelism: how gradients of all ranks and micro-batches become one.
  training->reducer = MakeReducer(*training, config);
  training->memory.gradients = training->reducer->ParameterGradients();
  // 6. The optimizer, on this rank's shard.
  const bool is_exact = data.spec.model.is_exact();
  const bool is_sharded = contract::HighestStage(config, data.spec.model) >= 1;
  const SumReduction over_shards{is_sharded && communicator.size() > 1 ? &communicator : nullptr, training->timeout};
  training->num_updates = data.num_updates;
  training->norm_history = data.norm_history;
  training->loss_scaler = data.loss_scaler;
  training->optimizer = is_exact ? MakeModularOptimizer(data, training->shard, *training->backend)
                                 : MakeRealOptimizer(data, training->shard, over_shards, *training->backend);
  // 7. The norms over shards, by which real families clip and skip.
  if (config.adaptive_clipping.kind == contract::AdaptiveClipping::Kind::kUnit) {
    training->unit_clipping =
        std::make_unique<UnitClipping>(config.adaptive_clipping, UnitForms(data), training->shard, over_shards);
  }
  if (!is_exact) {
    training->norm = std::make_unique<GradientNorm>(GradientNormInputs{training->shard, Exempt(data), over_shards});
  }
  // 8. The model last: it sees memory and micro-batches, none of the above.
  training->model = MakeModel(data.spec, *training);
  return training;
}

}  // namespace plumbline::optimized
