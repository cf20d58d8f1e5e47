// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/run_config.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "conformance/contract/config_parsing.h"
#include "conformance/contract/error.h"
#include "conformance/contract/loss_scale_config.h"
#include "conformance/contract/optimizer_config.h"
#include "conformance/contract/schedule_config.h"
#include "conformance/contract/strict_json.h"

namespace plumbline::contract {
namespace {

constexpr std::string_view kBuiltKeys[] = {"train_batch_size",
                                           "train_micro_batch_size_per_gpu",
                                           "gradient_accumulation_steps",
                                           "bf16",
                                           "fp16",
                                           "fp64",
                                           "zero_optimization",
                                           "optimizer",
                                           "param_groups",
                                           "scheduler",
                                           "gradient_clipping",
                                           "adaptive_clipping",
                                           "mesh"};

constexpr std::string_view kZeroKeys[] = {"stage",
                                          "layer_stages",
                                          "reduce_bucket_size",
                                          "overlap_comm",
                                          "stage3_prefetch_bucket_size",
                                          "stage3_param_persistence_threshold",
                                          "stage3_max_live_parameters"};

// A positive integer, or nothing where the key is absent or "auto".
std::optional<int64_t> PositiveOrAuto(const JsonValue& root, std::string_view key) {
  const std::optional<JsonValue> value = root.Find(key);
  if (!value) return std::nullopt;
  if (value->IsString()) {
    if (!IsAuto(*value)) value->Reject("a positive integer or \"auto\"");
    return std::nullopt;
  }
  return value->Count(1, kMaxCount);
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
  if (*micro > kMaxCount / config.accumulation_steps / config.data_degree) {
    Fail(ErrorCode::kInvalidArgument, identity + ", at most " + std::to_string(kMaxCount));
  }
  config.train_batch_size = *micro * config.accumulation_steps * config.data_degree;
}

void ParseStorage(const JsonValue& root, RunConfig& config) {
  if (const auto bf16 = root.Find("bf16")) {
    CheckKeys(*bf16, std::to_array<std::string_view>({"enabled"}), "bf16");
    if (const auto enabled = bf16->Find("enabled"); enabled && enabled->Bool()) config.storage = DType::kBF16;
  }
  if (const auto fp64 = root.Find("fp64")) {
    fp64->AllowOnly({"enabled"});
    if (const auto enabled = fp64->Find("enabled"); enabled && enabled->Bool()) {
      if (config.storage != DType::kF32) enabled->Reject("false where another storage type is enabled");
      config.storage = DType::kF64;
    }
  }
  if (const auto fp16 = root.Find("fp16")) ParseFp16(*fp16, config);
}

// A size of zero_optimization, in elements. "auto" is what Hugging Face's Trainer makes of it: tenths / 10 of `unit`,
// rounded down.
struct AutoSize {
  int64_t tenths;
  std::optional<int64_t> unit;
};

void TakeElems(const JsonValue& zero, const char* key, int64_t min, int64_t& field,
               const std::optional<AutoSize>& automatic = std::nullopt) {
  const auto value = zero.Find(key);
  if (!value) return;
  if (!automatic || !IsAuto(*value)) {
    field = value->Count(min, kMaxCount);
  } else if (!automatic->unit) {
    value->Reject("an integer where no model's width up to 1048576 resolves it");
  } else {
    field = automatic->tenths * *automatic->unit / 10;
  }
}

// How many layers there are, the model knows (case_file.h).
void ParseLayerStages(const JsonValue& stages, RunConfig& config) {
  for (size_t layer = 0; layer < stages.Size(); ++layer) config.layer_stages.push_back(stages[layer].Count(0, 3));
}

void ParseZero(const JsonValue& zero, std::optional<int64_t> width, RunConfig& config) {
  CheckKeys(zero, kZeroKeys, "zero_optimization");
  constexpr int64_t kMaxWidth = int64_t{1} << 20;  // whose square is kMaxCount
  if (width && *width > kMaxWidth) width = std::nullopt;
  const std::optional<int64_t> square = width ? std::optional(*width * *width) : std::nullopt;
  if (const auto stage = zero.Find("stage")) config.zero_stage = stage->Count(0, 3);
  if (const auto stages = zero.Find("layer_stages")) ParseLayerStages(*stages, config);
  if (const auto overlap = zero.Find("overlap_comm")) config.overlap_comm = overlap->Bool();
  TakeElems(zero, "reduce_bucket_size", 1, config.reduce_bucket_elems, AutoSize{10, square});
  TakeElems(zero, "stage3_prefetch_bucket_size", 0, config.prefetch_bucket_elems, AutoSize{9, square});
  TakeElems(zero, "stage3_param_persistence_threshold", 0, config.persistence_threshold_elems, AutoSize{100, width});
  TakeElems(zero, "stage3_max_live_parameters", 0, config.max_live_elems);
}

// A schedule that sets one rate for all gives a group with a rate of its own the share that this has of the
// optimizer's, of which there is none where that is 0.
void DemandShares(const JsonValue& root, const RunConfig& config) {
  switch (config.schedule.kind) {
    case Schedule::Kind::kConstant:
    case Schedule::Kind::kWarmupCosine:
      return;
    case Schedule::Kind::kWarmup:
    case Schedule::Kind::kWarmupDecay:
    case Schedule::Kind::kOneCycle:
      break;
  }
  for (size_t i = 0; i < config.groups.size(); ++i) {
    if (!config.groups[i].lr || config.params.lr > 0) continue;
    root.At("param_groups")[i].At("lr").Reject(
        "no lr of a group's own where optimizer.params.lr is 0 and scheduler.type is " +
        root.At("scheduler").At("type").String());
  }
}

// What only a real optimizer understands.
void ParseReal(const JsonValue& root, RunConfig& config) {
  if (IsModular(config.optimizer) && HasDynamicLossScale(config)) {
    Fail(ErrorCode::kInvalidArgument, root.At("fp16").Path() +
                                          ".loss_scale is 0, a dynamic scale, with optimizer " +
                                          std::string(Name(config.optimizer)) +
                                          ", which skips no step; allowed: a power of two from 1 to 16777216");
  }
  for (const char* key : {"param_groups", "scheduler", "gradient_clipping", "adaptive_clipping"}) {
    if (!IsModular(config.optimizer) || !root.Find(key)) continue;
    Fail(ErrorCode::kInvalidArgument, root.Path() + ": key \"" + std::string(key) + "\" is given with optimizer " +
                                          std::string(Name(config.optimizer)) + ", which has none; leave it out");
  }
  if (const auto groups = root.Find("param_groups")) ParseGroups(*groups, config);
  if (const auto scheduler = root.Find("scheduler")) config.schedule = ParseSchedule(*scheduler, config.params.lr);
  DemandShares(root, config);
  if (const auto clipping = root.Find("gradient_clipping")) config.gradient_clipping = NotNegative(*clipping);
  if (const auto clipping = root.Find("adaptive_clipping")) ParseAdaptiveClipping(*clipping, config);
}

// Only fp32 and bf16 have the key `bf16` alone.
std::string StorageJson(const RunConfig& config) {
  std::string json = ", \"bf16\": {\"enabled\": ";
  json += (config.storage == DType::kBF16 ? "true" : "false") + HintsJson(config.hints, "bf16") + "}";
  if (config.storage == DType::kF64) json += ", \"fp64\": {\"enabled\": true}";
  return json + Fp16Json(config);
}

std::string LayerStagesJson(const RunConfig& config) {
  if (config.layer_stages.empty()) return "";
  std::string stages;
  for (const int64_t stage : config.layer_stages) stages += (stages.empty() ? "" : ", ") + std::to_string(stage);
  return ", \"layer_stages\": [" + stages + "]";
}

std::string ZeroJson(const RunConfig& config) {
  return "{\"stage\": " + std::to_string(config.zero_stage) + LayerStagesJson(config) +
         ", \"reduce_bucket_size\": " + std::to_string(config.reduce_bucket_elems) +
         ", \"overlap_comm\": " + (config.overlap_comm ? "true" : "false") +
         ", \"stage3_prefetch_bucket_size\": " + std::to_string(config.prefetch_bucket_elems) +
         ", \"stage3_param_persistence_threshold\": " + std::to_string(config.persistence_threshold_elems) +
         ", \"stage3_max_live_parameters\": " + std::to_string(config.max_live_elems) +
         HintsJson(config.hints, "zero_optimization") + "}";
}

}  // namespace

std::string_view Name(OptimizerKind kind) {
  constexpr std::string_view kNames[] = {"ModularMomentum", "ModularSGD", "AdamW", "SGD", "Adam", "Lion", "Lamb"};
  return kNames[static_cast<int>(kind)];
}

bool IsModular(OptimizerKind kind) {
  return kind == OptimizerKind::kModularMomentum || kind == OptimizerKind::kModularSgd;
}

bool HasDynamicLossScale(const RunConfig& config) { return config.storage == DType::kF16 && config.loss_scale == 0; }

bool HasBetas(OptimizerKind kind) { return !IsModular(kind) && kind != OptimizerKind::kSgd; }

std::string_view StorageName(DType storage) {
  switch (storage) {
    case DType::kF64:
      return "fp64";
    case DType::kBF16:
      return "bf16";
    case DType::kF16:
      return "fp16";
    default:
      return "fp32";
  }
}

RunConfig ParseRunConfig(std::string_view json, std::string_view where) {
  return ParseRunConfig(JsonValue::Parse(json, where, JsonValue::Comments::kAllowed));
}

RunConfig ParseRunConfig(const JsonValue& root, std::optional<int64_t> width) {
  if (!root.IsObject()) root.Reject("an object");
  CheckKeys(root, kBuiltKeys, "");
  RunConfig config;
  if (const auto mesh = root.Find("mesh")) {
    CheckKeys(*mesh, std::to_array<std::string_view>({"data"}), "mesh");
    if (const auto data = mesh->Find("data")) config.data_degree = data->Count(1, int64_t{1} << 20);
  }
  ParseStorage(root, config);
  if (const auto zero = root.Find("zero_optimization")) ParseZero(*zero, width, config);
  ParseOptimizer(root.At("optimizer"), config);
  ParseReal(root, config);
  ResolveBatch(root, config);
  config.hints = ParseHints(root);
  return config;
}

std::string ToJson(const RunConfig& config) {
  std::string json = "{\"train_batch_size\": " + std::to_string(config.train_batch_size) +
                     ", \"train_micro_batch_size_per_gpu\": " + std::to_string(config.micro_batch_size) +
                     ", \"gradient_accumulation_steps\": " + std::to_string(config.accumulation_steps) +
                     StorageJson(config) + ", \"zero_optimization\": " + ZeroJson(config) +
                     ", \"optimizer\": " + OptimizerJson(config);
  if (!IsModular(config.optimizer)) {
    if (!config.groups.empty()) json += ", \"param_groups\": " + GroupsJson(config);
    if (config.schedule.kind != Schedule::Kind::kConstant) json += ", \"scheduler\": " + ToJson(config.schedule);
    json += ", \"gradient_clipping\": " + JsonNumber(config.gradient_clipping);
    if (config.adaptive_clipping.kind != AdaptiveClipping::Kind::kNone) {
      json += ", \"adaptive_clipping\": " + ToJson(config.adaptive_clipping);
    }
  }
  return json + ", \"mesh\": {\"data\": " + std::to_string(config.data_degree) + "}" + HintsJson(config.hints, "") +
         "}";
}

}  // namespace plumbline::contract
