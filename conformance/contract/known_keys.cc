// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/known_keys.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "conformance/contract/config_parsing.h"
#include "conformance/contract/error.h"

namespace plumbline::contract {
namespace {

struct FixedKey {
  std::string_view object;
  std::string_view name;
  void (*check)(const JsonValue& value, const FixedKey& key);
  std::string_view only = "";  // JSON text of the one value, for Only
};

struct HintKey {
  std::string_view object;
  std::string_view name;
  std::string (*canonical)(const JsonValue& value);
};

struct UnbuiltKey {
  std::string_view object;
  std::string_view name;
};

[[noreturn]] void RefuseAsUnbuilt(const JsonValue& value, std::string_view supported) {
  Fail(ErrorCode::kUnsupported, value.Path() + " is " + value.Shown() +
                                    ", which is known but not built yet; supported: " + std::string(supported));
}

void Only(const JsonValue& value, const FixedKey& key) {
  if (!value.Equals(key.only)) RefuseAsUnbuilt(value, key.only);
}

// A feature is off where a member of its object says so; the others then say nothing. What an absent member means
// differs between DeepSpeed's page and its code, so it must be there.
void MemberOnly(const JsonValue& value, std::string_view member, std::string_view off) {
  const std::optional<JsonValue> found = value.IsObject() ? value.Find(member) : std::nullopt;
  if (!found) RefuseAsUnbuilt(value, "an object with " + std::string(member) + " " + std::string(off));
  if (!found->Equals(off)) RefuseAsUnbuilt(*found, off);
}

void Disabled(const JsonValue& value, const FixedKey&) { MemberOnly(value, "enabled", "false"); }
void NotCompiled(const JsonValue& value, const FixedKey&) { MemberOnly(value, "deepcompile", "false"); }
void NotOffloaded(const JsonValue& value, const FixedKey&) {
  if (!value.IsNull()) MemberOnly(value, "device", "\"none\"");
}

// An object of the config itself, whose keys are in these tables too.
void ObjectOfFixed(const JsonValue& value, const FixedKey& key) { CheckKeys(value, FixedNames(key.name), key.name); }

// What these say is of something that is not there.
void AnyFlag(const JsonValue& value, const FixedKey&) { value.Bool(); }
void AnyCountOrNull(const JsonValue& value, const FixedKey&) {
  if (!value.IsNull()) value.Count(0, kMaxCount);
}
void AnyObject(const JsonValue& value, const FixedKey&) { value.Keys(); }

constexpr FixedKey kFixedKeys[] = {
    {"", "amp", Disabled},
    {"", "torch_autocast", Disabled},
    {"", "bfloat16", Disabled},
    {"fp16", "auto_cast", Only, "false"},
    {"fp16", "fp16_master_weights_and_grads", Only, "false"},
    {"bf16", "auto_cast", Only, "false"},
    {"bf16", "check_grad_overflow", Only, "true"},
    {"bf16", "check_overflow", Only, "true"},
    {"bf16", "bf16_master_weights_and_grads", Only, "false"},
    {"bf16", "bf16_optimizer_states", Only, "false"},
    {"", "communication_data_type", Only, "\"fp32\""},
    {"", "seq_parallel_communication_data_type", Only, "\"fp32\""},
    {"", "seq_parallel_comm_data_type", Only, "\"fp32\""},
    {"", "fp32_allreduce", Only, "true"},
    {"", "gradient_allreduce_op", Only, "\"mean\""},
    {"", "data_types", ObjectOfFixed},
    {"data_types", "grad_accum_dtype", Only, "\"fp32\""},
    {"", "prescale_gradients", Only, "false"},
    {"", "gradient_predivide_factor", Only, "1"},
    {"", "sparse_gradients", Only, "false"},
    {"", "disable_allgather", Only, "false"},
    {"", "dataloader_drop_last", AnyFlag},
    {"", "zero_allow_untested_optimizer", AnyFlag},
    {"", "zero_force_ds_cpu_optimizer", AnyFlag},
    {"optimizer", "legacy_fusion", Only, "false"},
    {"optimizer.params", "torch_adam", AnyFlag},
    {"optimizer.params", "bias_correction", Only, "true"},
    {"optimizer.params", "amsgrad", Only, "false"},
    {"optimizer.params", "max_grad_norm", Only, "0"},
    {"optimizer.params", "dampening", Only, "0"},
    {"optimizer.params", "eps_inside_sqrt", Only, "false"},
    {"scheduler.params", "last_batch_iteration", Only, "-1"},
    {"scheduler.params", "decay_mom_rate", Only, "0"},
    {"zero_optimization", "allgather_partitions", Only, "true"},
    {"zero_optimization", "reduce_scatter", Only, "true"},
    {"zero_optimization", "legacy_stage1", Only, "false"},
    {"zero_optimization", "contiguous_gradients", Only, "true"},
    {"zero_optimization", "offload_param", NotOffloaded},
    {"zero_optimization", "offload_optimizer", NotOffloaded},
    {"zero_optimization", "cpu_offload", Only, "false"},
    {"zero_optimization", "cpu_offload_param", Only, "false"},
    {"zero_optimization", "cpu_offload_use_pin_memory", AnyFlag},
    {"zero_optimization", "zenflow", Only, "null"},
    {"zero_optimization", "stage3_gather_16bit_weights_on_model_save", AnyFlag},
    {"zero_optimization", "stage3_gather_fp16_weights_on_model_save", AnyFlag},
    {"zero_optimization", "stage3_model_persistence_threshold", Only, "9223372036854775807"},
    {"zero_optimization", "stage3_use_all_reduce_for_fetch_params", Only, "false"},
    {"zero_optimization", "stage3_allgather_sequential", Only, "false"},
    {"zero_optimization", "pipeline_loading_checkpoint", Only, "false"},
    {"zero_optimization", "ignore_unused_parameters", Only, "true"},
    {"zero_optimization", "zero_hpz_partition_size", Only, "1"},
    {"zero_optimization", "zero_quantized_weights", Only, "false"},
    {"zero_optimization", "zero_quantized_nontrainable_weights", Only, "false"},
    {"zero_optimization", "zero_quantized_gradients", Only, "false"},
    {"zero_optimization", "zeropp_loco_param", Only, "null"},
    {"zero_optimization", "elastic_checkpoint", Only, "false"},
    {"zero_optimization", "load_from_fp32_weights", Only, "true"},
    {"zero_optimization", "mics_shard_size", Only, "-1"},
    {"zero_optimization", "mics_hierarchical_params_gather", Only, "false"},
    {"zero_optimization", "save_muon_momentum_buffer_in_memory", Only, "false"},
    {"", "activation_checkpointing", ObjectOfFixed},
    {"activation_checkpointing", "partition_activations", Only, "false"},
    {"activation_checkpointing", "cpu_checkpointing", Only, "false"},
    {"activation_checkpointing", "contiguous_memory_optimization", Only, "false"},
    {"activation_checkpointing", "number_checkpoints", AnyCountOrNull},
    {"activation_checkpointing", "synchronize_checkpoint_boundary", Only, "false"},
    {"activation_checkpointing", "profile", Only, "false"},
    {"", "sequence_parallel_size", Only, "1"},
    {"", "use_data_before_expert_parallelism", Only, "false"},
    {"", "hybrid_engine", Disabled},
    {"mesh", "pipeline", Only, "1"},
    {"mesh", "tensor", Only, "1"},
    {"mesh", "sequence", Only, "1"},
    {"mesh", "expert", Only, "1"},
    {"mesh", "context", Only, "1"},
    {"", "checkpoint", ObjectOfFixed},
    {"checkpoint", "load_universal", Only, "false"},
    {"checkpoint", "use_node_local_storage", Only, "false"},
    {"", "nebula", Disabled},
    {"", "elasticity", Disabled},
    {"", "aio", AnyObject},
    {"", "compile", NotCompiled},
    {"", "autotuning", Disabled},
    {"", "data_efficiency", Disabled},
    {"", "curriculum_learning", Disabled},
    {"", "eigenvalue", Disabled},
    {"", "progressive_layer_drop", Disabled},
    {"", "flops_profiler", Disabled},
    {"", "comms_logger", Disabled},
    {"", "tensorboard", Disabled},
    {"", "wandb", Disabled},
    {"", "csv_monitor", Disabled},
    {"", "comet", Disabled},
};

std::string Flag(const JsonValue& value) { return value.Bool() ? "true" : "false"; }

template <int64_t kMin>
std::string CountFrom(const JsonValue& value) {
  return std::to_string(value.Count(kMin, kMaxCount));
}

std::string LogLevel(const JsonValue& value) {
  constexpr std::string_view kLevels[] = {"debug", "info", "warning", "error", "critical"};
  return JsonQuote(kLevels[value.OneOf(kLevels)]);
}

constexpr HintKey kHintKeys[] = {
    {"bf16", "immediate_grad_update", Flag},
    {"zero_optimization", "allgather_bucket_size", CountFrom<0>},
    {"zero_optimization", "use_multi_rank_bucket_allreduce", Flag},
    {"zero_optimization", "sub_group_size", CountFrom<0>},
    {"zero_optimization", "stage3_max_reuse_distance", CountFrom<0>},
    {"zero_optimization", "stage3_module_granularity_threshold", CountFrom<0>},
    {"zero_optimization", "stage3_partition_stream_chunk_size", CountFrom<0>},
    {"zero_optimization", "memory_efficient_linear", Flag},
    {"zero_optimization", "grad_hooks", Flag},
    {"zero_optimization", "override_module_apply", Flag},
    {"zero_optimization", "round_robin_gradients", Flag},
    {"zero_optimization", "log_trace_cache_warnings", Flag},
    {"zero_optimization", "enable_sanity_checks", Flag},
    {"", "graph_harvesting", Flag},
    {"", "steps_per_print", CountFrom<1>},
    {"", "wall_clock_breakdown", Flag},
    {"", "memory_breakdown", Flag},
    {"", "dump_state", Flag},
    {"", "log_level", LogLevel},
};

constexpr UnbuiltKey kUnbuiltKeys[] = {
    {"", "managed_gradient_accumulation"},
    {"data_types", "param_dtype"},
    {"data_types", "buffer_dtype"},
    {"", "sparse_attention"},
    {"", "seed"},
    {"", "vocabulary_size"},
    {"zero_optimization", "compute_grad_norm"},
    {"zero_optimization", "parameter_alignment"},
    {"zero_optimization", "leaf_module"},
    {"", "pipeline"},
    {"", "tensor_parallel"},
    {"", "expert_parallel"},
    {"checkpoint", "tag_validation"},
    {"checkpoint", "parallel_write"},
    {"", "datastates_ckpt"},
    {"", "compression_training"},
    {"", "weight_quantization"},
    {"", "quantize_training"},
    {"", "timers"},
    {"", "monitor_config"},
};

template <typename Key, size_t kSize>
std::vector<std::string_view> NamesIn(const Key (&keys)[kSize], std::string_view object) {
  std::vector<std::string_view> names;
  for (const Key& key : keys) {
    if (key.object == object) names.push_back(key.name);
  }
  return names;
}

}  // namespace

std::vector<std::string_view> FixedNames(std::string_view object) { return NamesIn(kFixedKeys, object); }
std::vector<std::string_view> HintNames(std::string_view object) { return NamesIn(kHintKeys, object); }
std::vector<std::string_view> UnbuiltNames(std::string_view object) { return NamesIn(kUnbuiltKeys, object); }

void CheckKnownKeys(const JsonValue& object, std::string_view path) {
  for (const UnbuiltKey& key : kUnbuiltKeys) {
    if (key.object != path || !object.Find(key.name)) continue;
    Fail(ErrorCode::kUnsupported,
         object.Path() + ": key \"" + std::string(key.name) + "\" is known but not built yet; leave it out");
  }
  for (const FixedKey& key : kFixedKeys) {
    if (key.object != path) continue;
    if (const auto value = object.Find(key.name)) key.check(*value, key);
  }
}

Hints ParseHints(const JsonValue& root) {
  Hints hints;
  for (const HintKey& key : kHintKeys) {
    const std::optional<JsonValue> object = key.object.empty() ? root : root.Find(key.object);
    const std::optional<JsonValue> value = object ? object->Find(key.name) : std::nullopt;
    if (!value) continue;
    const std::string prefix = key.object.empty() ? "" : std::string(key.object) + ".";
    hints.emplace(prefix + std::string(key.name), key.canonical(*value));
  }
  return hints;
}

std::string HintsJson(const Hints& hints, std::string_view object) {
  std::string json;
  for (const auto& [path, value] : hints) {
    const size_t dot = path.rfind('.');
    const std::string_view owner = dot == std::string::npos ? "" : std::string_view(path).substr(0, dot);
    if (owner != object) continue;
    json += ", " + JsonQuote(dot == std::string::npos ? path : path.substr(dot + 1)) + ": " + value;
  }
  return json;
}

}  // namespace plumbline::contract
