// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/run_config.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "conformance/contract/error.h"
#include "conformance/contract/strict_json.h"

namespace plumbline::contract {
namespace {

constexpr std::string_view kBuiltKeys[] = {"train_batch_size",
                                           "train_micro_batch_size_per_gpu",
                                           "gradient_accumulation_steps",
                                           "bf16",
                                           "zero_optimization",
                                           "optimizer",
                                           "mesh"};

// Keys that DeepSpeed users write and that no engine of ours understands yet: unsupported, never ignored.
constexpr std::string_view kUnbuiltKeys[] = {"fp16",
                                             "amp",
                                             "scheduler",
                                             "gradient_clipping",
                                             "prescale_gradients",
                                             "gradient_predivide_factor",
                                             "sparse_gradients",
                                             "communication_data_type",
                                             "data_types",
                                             "activation_checkpointing",
                                             "wall_clock_breakdown",
                                             "flops_profiler",
                                             "steps_per_print",
                                             "dump_state",
                                             "memory_breakdown",
                                             "zero_allow_untested_optimizer",
                                             "zero_force_ds_cpu_optimizer",
                                             "aio",
                                             "autotuning",
                                             "tensorboard",
                                             "wandb",
                                             "csv_monitor",
                                             "comms_logger",
                                             "checkpoint",
                                             "data_efficiency",
                                             "curriculum_learning",
                                             "compression_training",
                                             "eigenvalue",
                                             "progressive_layer_drop",
                                             "sparse_attention",
                                             "elasticity",
                                             "pipeline",
                                             "compile",
                                             "seed",
                                             "dataloader_drop_last",
                                             "disable_allgather",
                                             "timers",
                                             "monitor_config"};

constexpr std::string_view kZeroKeys[] = {"stage", "reduce_bucket_size"};
constexpr std::string_view kUnbuiltZeroKeys[] = {"allgather_partitions",
                                                 "allgather_bucket_size",
                                                 "overlap_comm",
                                                 "reduce_scatter",
                                                 "contiguous_gradients",
                                                 "offload_param",
                                                 "offload_optimizer",
                                                 "cpu_offload",
                                                 "sub_group_size",
                                                 "stage3_max_live_parameters",
                                                 "stage3_max_reuse_distance",
                                                 "stage3_prefetch_bucket_size",
                                                 "stage3_param_persistence_threshold",
                                                 "stage3_gather_16bit_weights_on_model_save",
                                                 "round_robin_gradients",
                                                 "ignore_unused_parameters",
                                                 "zero_hpz_partition_size",
                                                 "zero_quantized_weights",
                                                 "zero_quantized_gradients",
                                                 "elastic_checkpoint",
                                                 "load_from_fp32_weights",
                                                 "mics_shard_size",
                                                 "model_persistence_threshold"};

constexpr std::string_view kUnbuiltMeshKeys[] = {"pipeline", "tensor", "sequence", "expert", "context"};
constexpr std::string_view kUnbuiltOptimizerKeys[] = {"params"};
constexpr std::string_view kUnbuiltBf16Keys[] = {"auto_cast", "immediate_grad_update", "check_grad_overflow"};

// Unsupported for known keys outside `built`, InvalidArgument with the nearest known key for unknown ones.
void CheckKeys(const JsonValue& object, std::span<const std::string_view> built,
               std::span<const std::string_view> unbuilt) {
  std::vector<std::string_view> known(built.begin(), built.end());
  known.insert(known.end(), unbuilt.begin(), unbuilt.end());
  object.AllowOnly(known);
  for (const std::string& key : object.Keys()) {
    if (std::find(unbuilt.begin(), unbuilt.end(), key) == unbuilt.end()) continue;
    Fail(ErrorCode::kUnsupported, object.Path() + ": key \"" + key + "\" is known but not built yet; leave it out");
  }
}

// A positive integer, or nothing where the key is absent or "auto".
std::optional<int64_t> PositiveOrAuto(const JsonValue& root, std::string_view key) {
  const std::optional<JsonValue> value = root.Find(key);
  if (!value) return std::nullopt;
  if (value->IsString()) {
    if (value->String() != "auto") value->Reject("a positive integer or \"auto\"");
    return std::nullopt;
  }
  return value->Int(1, int64_t{1} << 40);
}

// Resolves the batch identity B = m * A * R. B, m and A are at most 2^40 and R at most 2^20, so a product with R fits;
// the product of all three is checked by division.
void ResolveBatch(const JsonValue& root, RunConfig& config) {
  const std::optional<int64_t> batch = PositiveOrAuto(root, "train_batch_size");
  const std::optional<int64_t> micro = PositiveOrAuto(root, "train_micro_batch_size_per_gpu");
  std::optional<int64_t> accumulation = PositiveOrAuto(root, "gradient_accumulation_steps");
  const std::string identity = root.Path() +
                               ": train_batch_size must be train_micro_batch_size_per_gpu x "
                               "gradient_accumulation_steps x mesh.data";
  if (!batch && !micro) {
    Fail(ErrorCode::kInvalidArgument,
         root.Path() + ": train_batch_size or train_micro_batch_size_per_gpu must be given as a number");
  }
  const auto divide = [&](int64_t whole, int64_t part, const char* name) {
    if (whole % part == 0) return whole / part;
    Fail(ErrorCode::kInvalidArgument,
         identity + "; " + std::to_string(whole) + " does not divide by " + name + " = " + std::to_string(part));
  };
  if (batch && micro && !accumulation) {
    accumulation = divide(*batch, *micro * config.data_degree, "train_micro_batch_size_per_gpu x mesh.data");
  }
  config.accumulation_steps = accumulation.value_or(1);
  if (batch) {
    config.train_batch_size = *batch;
    config.micro_batch_size =
        divide(*batch, config.accumulation_steps * config.data_degree, "gradient_accumulation_steps x mesh.data");
    if (micro && *micro != config.micro_batch_size) {
      Fail(ErrorCode::kInvalidArgument, identity + "; " + std::to_string(*batch) + " is not " + std::to_string(*micro) +
                                            " x " + std::to_string(config.accumulation_steps) + " x " +
                                            std::to_string(config.data_degree));
    }
    return;
  }
  config.micro_batch_size = *micro;
  constexpr int64_t kMaxBatch = int64_t{1} << 40;
  if (*micro > kMaxBatch / config.accumulation_steps / config.data_degree) {
    Fail(ErrorCode::kInvalidArgument, identity + ", at most " + std::to_string(kMaxBatch));
  }
  config.train_batch_size = *micro * config.accumulation_steps * config.data_degree;
}

void ParseZero(const JsonValue& zero, RunConfig& config) {
  CheckKeys(zero, kZeroKeys, kUnbuiltZeroKeys);
  if (const auto stage = zero.Find("stage")) config.zero_stage = stage->Int(0, 3);
  if (const auto bucket = zero.Find("reduce_bucket_size")) {
    config.reduce_bucket_elems = bucket->Int(1, int64_t{1} << 40);
  }
}

OptimizerKind ParseOptimizer(const JsonValue& optimizer) {
  CheckKeys(optimizer, std::to_array<std::string_view>({"type"}), kUnbuiltOptimizerKeys);
  return optimizer.At("type").OneOf({"ModularMomentum", "ModularSGD"}) == 0 ? OptimizerKind::kModularMomentum
                                                                            : OptimizerKind::kModularSgd;
}

}  // namespace

std::string_view Name(OptimizerKind kind) {
  return kind == OptimizerKind::kModularMomentum ? "ModularMomentum" : "ModularSGD";
}

RunConfig ParseRunConfig(std::string_view json, std::string_view where) {
  return ParseRunConfig(JsonValue::Parse(json, where, JsonValue::Comments::kAllowed));
}

RunConfig ParseRunConfig(const JsonValue& root) {
  if (!root.IsObject()) root.Reject("an object");
  CheckKeys(root, kBuiltKeys, kUnbuiltKeys);
  RunConfig config;
  if (const auto mesh = root.Find("mesh")) {
    CheckKeys(*mesh, std::to_array<std::string_view>({"data"}), kUnbuiltMeshKeys);
    if (const auto data = mesh->Find("data")) config.data_degree = data->Int(1, int64_t{1} << 20);
  }
  if (const auto bf16 = root.Find("bf16")) {
    CheckKeys(*bf16, std::to_array<std::string_view>({"enabled"}), kUnbuiltBf16Keys);
    if (const auto enabled = bf16->Find("enabled"); enabled && enabled->Bool()) config.storage = DType::kBF16;
  }
  if (const auto zero = root.Find("zero_optimization")) ParseZero(*zero, config);
  config.optimizer = ParseOptimizer(root.At("optimizer"));
  ResolveBatch(root, config);
  return config;
}

std::string ToJson(const RunConfig& config) {
  return "{\"train_batch_size\": " + std::to_string(config.train_batch_size) +
         ", \"train_micro_batch_size_per_gpu\": " + std::to_string(config.micro_batch_size) +
         ", \"gradient_accumulation_steps\": " + std::to_string(config.accumulation_steps) +
         ", \"bf16\": {\"enabled\": " + (config.storage == DType::kBF16 ? "true" : "false") +
         "}, \"zero_optimization\": {\"stage\": " + std::to_string(config.zero_stage) +
         ", \"reduce_bucket_size\": " + std::to_string(config.reduce_bucket_elems) +
         "}, \"optimizer\": {\"type\": " + JsonQuote(Name(config.optimizer)) +
         "}, \"mesh\": {\"data\": " + std::to_string(config.data_degree) + "}}";
}

}  // namespace plumbline::contract
