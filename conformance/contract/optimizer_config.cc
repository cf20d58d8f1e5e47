// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/optimizer_config.h"

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "conformance/contract/config_parsing.h"
#include "conformance/contract/error.h"
#include "conformance/contract/group_pattern.h"

namespace plumbline::contract {
namespace {

void Take(const JsonValue& params, std::string_view key, double (*rule)(const JsonValue&), double& field) {
  if (const auto value = params.Find(key)) field = rule(*value);
}

BetaPair ParseBetas(const JsonValue& betas) {
  if (betas.Size() != 2) betas.Reject("two numbers from 0 to 0.9999999");
  return {Share(betas[0]), Share(betas[1])};
}

// What all optimizers of the real families have.
void TakeRateAndDecay(const JsonValue& params, OptimizerParams& parsed) {
  Take(params, "lr", NotNegative, parsed.lr);
  Take(params, "weight_decay", NotNegative, parsed.weight_decay);
}

void TakeBetas(const JsonValue& params, OptimizerParams& parsed) {
  const auto betas = params.Find("betas");
  if (!betas) return;
  const BetaPair pair = ParseBetas(*betas);
  parsed.beta1 = pair.first;
  parsed.beta2 = pair.second;
}

void ParseAdamW(const JsonValue& params, OptimizerParams& parsed) {
  CheckKeys(params, std::to_array<std::string_view>({"lr", "betas", "eps", "weight_decay"}), "optimizer.params");
  TakeRateAndDecay(params, parsed);
  TakeBetas(params, parsed);
  Take(params, "eps", NotNegative, parsed.eps);
}

// DeepSpeed's Adam decouples the decay unless it is told not to.
void ParseAdam(const JsonValue& params, RunConfig& config) {
  CheckKeys(params, std::to_array<std::string_view>({"lr", "betas", "eps", "weight_decay", "adam_w_mode"}),
            "optimizer.params");
  TakeRateAndDecay(params, config.params);
  TakeBetas(params, config.params);
  Take(params, "eps", NotNegative, config.params.eps);
  const auto decoupled = params.Find("adam_w_mode");
  if (!decoupled || decoupled->Bool()) config.optimizer = OptimizerKind::kAdamW;
}

void ParseLion(const JsonValue& params, OptimizerParams& parsed) {
  CheckKeys(params, std::to_array<std::string_view>({"lr", "betas", "weight_decay"}), "optimizer.params");
  TakeRateAndDecay(params, parsed);
  TakeBetas(params, parsed);
}

// Of LAMB. The key that is blamed is one that is there.
void ParseCoefficients(const JsonValue& params, OptimizerParams& parsed) {
  const auto max = params.Find("max_coeff"), min = params.Find("min_coeff");
  if (max) parsed.max_coeff = NotNegative(*max);
  if (min) parsed.min_coeff = NotNegative(*min);
  if (parsed.min_coeff <= parsed.max_coeff) return;
  const std::string largest = max ? "max_coeff, " : "max_coeff, by default ";
  if (min) min->Reject("at most " + largest + JsonNumber(parsed.max_coeff));
  params.At("max_coeff").Reject("at least min_coeff, by default " + JsonNumber(parsed.min_coeff));
}

void ParseLamb(const JsonValue& params, OptimizerParams& parsed) {
  CheckKeys(params, std::to_array<std::string_view>({"lr", "betas", "eps", "weight_decay", "max_coeff", "min_coeff"}),
            "optimizer.params");
  TakeRateAndDecay(params, parsed);
  TakeBetas(params, parsed);
  Take(params, "eps", NotNegative, parsed.eps);
  ParseCoefficients(params, parsed);
}

void ParseSgd(const JsonValue& params, OptimizerParams& parsed) {
  CheckKeys(params, std::to_array<std::string_view>({"lr", "momentum", "weight_decay", "nesterov"}),
            "optimizer.params");
  TakeRateAndDecay(params, parsed);
  Take(params, "momentum", Share, parsed.momentum);
  const auto nesterov = params.Find("nesterov");
  parsed.nesterov = nesterov && nesterov->Bool();
  if (parsed.nesterov && parsed.momentum == 0) nesterov->Reject("false where momentum is 0");
}

OptimizerParams DefaultsOf(OptimizerKind kind) {
  constexpr double kAdamWDecay = 0.01;
  constexpr double kLionBeta2 = 0.99;
  OptimizerParams params;
  if (kind == OptimizerKind::kAdamW) params.weight_decay = kAdamWDecay;
  if (kind == OptimizerKind::kLion) params.beta2 = kLionBeta2;
  return params;
}

std::string BetasJson(double beta1, double beta2) { return "[" + JsonNumber(beta1) + ", " + JsonNumber(beta2) + "]"; }

std::string ParamsJson(const RunConfig& config) {
  const OptimizerParams& params = config.params;
  std::string json = ", \"params\": {\"lr\": " + JsonNumber(params.lr);
  if (HasBetas(config.optimizer)) json += ", \"betas\": " + BetasJson(params.beta1, params.beta2);
  switch (config.optimizer) {
    case OptimizerKind::kAdam:
      json += ", \"adam_w_mode\": false, \"eps\": " + JsonNumber(params.eps);
      break;
    case OptimizerKind::kAdamW:
      json += ", \"eps\": " + JsonNumber(params.eps);
      break;
    case OptimizerKind::kLamb:
      json += ", \"eps\": " + JsonNumber(params.eps) + ", \"max_coeff\": " + JsonNumber(params.max_coeff) +
              ", \"min_coeff\": " + JsonNumber(params.min_coeff);
      break;
    case OptimizerKind::kSgd:
      json += ", \"momentum\": " + JsonNumber(params.momentum);
      if (params.nesterov) json += ", \"nesterov\": true";
      break;
    default:
      break;
  }
  return json + ", \"weight_decay\": " + JsonNumber(params.weight_decay) + "}";
}

}  // namespace

void ParseOptimizer(const JsonValue& optimizer, RunConfig& config) {
  CheckKeys(optimizer, std::to_array<std::string_view>({"type", "params"}), "optimizer");
  config.optimizer = static_cast<OptimizerKind>(
      optimizer.At("type").OneOf({"ModularMomentum", "ModularSGD", "AdamW", "SGD", "Adam", "Lion", "Lamb"}));
  config.params = DefaultsOf(config.optimizer);
  const JsonValue params = optimizer.Find("params").value_or(JsonValue::Parse("{}", optimizer.Path() + ".params"));
  switch (config.optimizer) {
    case OptimizerKind::kModularMomentum:
    case OptimizerKind::kModularSgd:
      params.AllowOnly({});
      return;
    case OptimizerKind::kAdamW:
      return ParseAdamW(params, config.params);
    case OptimizerKind::kSgd:
      return ParseSgd(params, config.params);
    case OptimizerKind::kAdam:
      return ParseAdam(params, config);
    case OptimizerKind::kLion:
      return ParseLion(params, config.params);
    case OptimizerKind::kLamb:
      return ParseLamb(params, config.params);
  }
}

void ParseGroups(const JsonValue& groups, RunConfig& config) {
  for (size_t i = 0; i < groups.Size(); ++i) {
    const JsonValue entry = groups[i];
    entry.AllowOnly({"match", "lr", "weight_decay", "betas", "clip"});
    ParameterGroup group;
    const JsonValue match = entry.At("match");
    if (!match.IsString() || !IsGroupPattern(match.String())) match.Reject(kGroupPatterns);
    group.match = match.String();
    if (const auto lr = entry.Find("lr")) group.lr = NotNegative(*lr);
    if (const auto decay = entry.Find("weight_decay")) group.weight_decay = NotNegative(*decay);
    if (const auto betas = entry.Find("betas")) {
      if (!HasBetas(config.optimizer)) betas->Reject("no betas with " + std::string(Name(config.optimizer)));
      group.betas = ParseBetas(*betas);
    }
    if (const auto clip = entry.Find("clip")) group.clip = clip->Bool();
    config.groups.push_back(std::move(group));
  }
}

void ParseAdaptiveClipping(const JsonValue& clipping, RunConfig& config) {
  AdaptiveClipping& parsed = config.adaptive_clipping;
  if (config.gradient_clipping > 0) clipping.Reject("absent where gradient_clipping is more than 0");
  if (clipping.At("type").OneOf({"unit", "history"}) == 0) {
    clipping.AllowOnly({"type", "ratio", "eps"});
    parsed.kind = AdaptiveClipping::Kind::kUnit;
    Take(clipping, "ratio", Positive, parsed.ratio);
    Take(clipping, "eps", Positive, parsed.eps);
    return;
  }
  clipping.AllowOnly({"type", "deviations", "decay", "warmup_steps"});
  parsed.kind = AdaptiveClipping::Kind::kHistory;
  Take(clipping, "deviations", NotNegative, parsed.deviations);
  Take(clipping, "decay", Share, parsed.decay);
  if (const auto steps = clipping.Find("warmup_steps")) parsed.warmup_steps = steps->Count(1, kMaxCount);
}

std::string OptimizerJson(const RunConfig& config) {
  std::string json = "{\"type\": " + JsonQuote(Name(config.optimizer));
  if (!IsModular(config.optimizer)) json += ParamsJson(config);
  return json + "}";
}

std::string GroupsJson(const RunConfig& config) {
  std::string json;
  for (const ParameterGroup& group : config.groups) {
    json += (json.empty() ? "" : ", ") + ("{\"match\": " + JsonQuote(group.match));
    if (group.lr) json += ", \"lr\": " + JsonNumber(*group.lr);
    if (group.weight_decay) json += ", \"weight_decay\": " + JsonNumber(*group.weight_decay);
    if (group.betas) json += ", \"betas\": " + BetasJson(group.betas->first, group.betas->second);
    if (!group.clip) json += ", \"clip\": false";
    json += "}";
  }
  return "[" + json + "]";
}

std::string ToJson(const AdaptiveClipping& clipping) {
  if (clipping.kind == AdaptiveClipping::Kind::kUnit) {
    return "{\"type\": \"unit\", \"ratio\": " + JsonNumber(clipping.ratio) + ", \"eps\": " + JsonNumber(clipping.eps) +
           "}";
  }
  return "{\"type\": \"history\", \"deviations\": " + JsonNumber(clipping.deviations) +
         ", \"decay\": " + JsonNumber(clipping.decay) + ", \"warmup_steps\": " + std::to_string(clipping.warmup_steps) +
         "}";
}

}  // namespace plumbline::contract
