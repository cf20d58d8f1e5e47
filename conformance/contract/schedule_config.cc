// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/schedule_config.h"

#include <array>
#include <string_view>

#include "conformance/contract/config_parsing.h"
#include "conformance/contract/error.h"

namespace plumbline::contract {
namespace {

using Kind = Schedule::Kind;

std::string_view TypeOf(Kind kind) {
  constexpr std::string_view kTypes[] = {"", "WarmupLR", "WarmupDecayLR", "WarmupCosineLR", "OneCycle"};
  return kTypes[static_cast<int>(kind)];
}

void Take(const JsonValue& params, std::string_view key, double& field) {
  if (const auto value = params.Find(key)) field = NotNegative(*value);
}

void Take(const JsonValue& params, std::string_view key, int64_t min, int64_t& field) {
  if (const auto value = params.Find(key)) field = value->Count(min, kMaxCount);
}

void ParseWarmup(const JsonValue& params, Schedule& schedule) {
  Take(params, "warmup_num_steps", 0, schedule.warmup_num_steps);
  if (const auto type = params.Find("warmup_type")) schedule.linear = type->OneOf({"log", "linear"}) == 1;
}

void ParseWarmupRates(const JsonValue& params, Schedule& schedule) {
  Take(params, "warmup_min_lr", schedule.warmup_min_lr);
  Take(params, "warmup_max_lr", schedule.warmup_max_lr);
  ParseWarmup(params, schedule);
}

void ParseWarmupLr(const JsonValue& params, Schedule& schedule) {
  CheckKeys(params,
            std::to_array<std::string_view>({"warmup_min_lr", "warmup_max_lr", "warmup_num_steps", "warmup_type"}),
            "scheduler.params");
  ParseWarmupRates(params, schedule);
}

void ParseWarmupDecayLr(const JsonValue& params, Schedule& schedule) {
  CheckKeys(params,
            std::to_array<std::string_view>(
                {"total_num_steps", "warmup_min_lr", "warmup_max_lr", "warmup_num_steps", "warmup_type"}),
            "scheduler.params");
  ParseWarmupRates(params, schedule);
  schedule.total_num_steps = params.At("total_num_steps").Count(0, kMaxCount);
}

void ParseWarmupCosineLr(const JsonValue& params, Schedule& schedule) {
  CheckKeys(params,
            std::to_array<std::string_view>(
                {"total_num_steps", "warmup_min_ratio", "warmup_num_steps", "cos_min_ratio", "warmup_type"}),
            "scheduler.params");
  Take(params, "warmup_min_ratio", schedule.warmup_min_ratio);
  Take(params, "cos_min_ratio", schedule.cos_min_ratio);
  ParseWarmup(params, schedule);
  schedule.total_num_steps = params.At("total_num_steps").Count(0, kMaxCount);
}

void ParseOneCycle(const JsonValue& params, Schedule& schedule) {
  CheckKeys(
      params,
      std::to_array<std::string_view>({"cycle_min_lr", "cycle_max_lr", "decay_lr_rate", "cycle_first_step_size",
                                       "cycle_second_step_size", "cycle_first_stair_count", "cycle_second_stair_count",
                                       "decay_step_size", "cycle_momentum", "cycle_min_mom", "cycle_max_mom"}),
      "scheduler.params");
  Cycle& cycle = schedule.cycle;
  cycle.min_lr = NotNegative(params.At("cycle_min_lr"));
  cycle.max_lr = NotNegative(params.At("cycle_max_lr"));
  Take(params, "decay_lr_rate", cycle.decay_lr_rate);
  Take(params, "cycle_first_step_size", 1, cycle.first_steps);
  cycle.second_steps = cycle.first_steps;
  Take(params, "cycle_second_step_size", 1, cycle.second_steps);
  Take(params, "cycle_first_stair_count", 0, cycle.first_stairs);
  cycle.second_stairs = cycle.first_stairs;
  Take(params, "cycle_second_stair_count", 0, cycle.second_stairs);
  Take(params, "decay_step_size", 0, cycle.decay_steps);
  if (const auto moves = params.Find("cycle_momentum")) cycle.moves_momentum = moves->Bool();
  if (const auto min = params.Find("cycle_min_mom")) cycle.min_momentum = Share(*min);
  if (const auto max = params.Find("cycle_max_mom")) cycle.max_momentum = Share(*max);
}

std::string WarmupJson(const Schedule& schedule) {
  return ", \"warmup_num_steps\": " + std::to_string(schedule.warmup_num_steps) +
         ", \"warmup_type\": " + (schedule.linear ? "\"linear\"" : "\"log\"");
}

std::string WarmupRatesJson(const Schedule& schedule) {
  return "\"warmup_min_lr\": " + JsonNumber(schedule.warmup_min_lr) +
         ", \"warmup_max_lr\": " + JsonNumber(schedule.warmup_max_lr) + WarmupJson(schedule);
}

std::string CycleJson(const Cycle& cycle) {
  return "\"cycle_min_lr\": " + JsonNumber(cycle.min_lr) + ", \"cycle_max_lr\": " + JsonNumber(cycle.max_lr) +
         ", \"decay_lr_rate\": " + JsonNumber(cycle.decay_lr_rate) +
         ", \"cycle_first_step_size\": " + std::to_string(cycle.first_steps) +
         ", \"cycle_second_step_size\": " + std::to_string(cycle.second_steps) +
         ", \"cycle_first_stair_count\": " + std::to_string(cycle.first_stairs) +
         ", \"cycle_second_stair_count\": " + std::to_string(cycle.second_stairs) +
         ", \"decay_step_size\": " + std::to_string(cycle.decay_steps) +
         ", \"cycle_momentum\": " + (cycle.moves_momentum ? "true" : "false") +
         ", \"cycle_min_mom\": " + JsonNumber(cycle.min_momentum) +
         ", \"cycle_max_mom\": " + JsonNumber(cycle.max_momentum);
}

std::string ParamsJson(const Schedule& schedule) {
  const std::string total = "\"total_num_steps\": " + std::to_string(schedule.total_num_steps) + ", ";
  switch (schedule.kind) {
    case Kind::kWarmup:
      return WarmupRatesJson(schedule);
    case Kind::kWarmupDecay:
      return total + WarmupRatesJson(schedule);
    case Kind::kWarmupCosine:
      return total + "\"warmup_min_ratio\": " + JsonNumber(schedule.warmup_min_ratio) + WarmupJson(schedule) +
             ", \"cos_min_ratio\": " + JsonNumber(schedule.cos_min_ratio);
    case Kind::kOneCycle:
      return CycleJson(schedule.cycle);
    case Kind::kConstant:
      break;
  }
  Check(false, "a constant rate has no scheduler");
  return "";
}

}  // namespace

Schedule ParseSchedule(const JsonValue& scheduler, double optimizer_lr) {
  scheduler.AllowOnly({"type", "params"});
  const size_t type = scheduler.At("type").OneOf({"WarmupLR", "WarmupDecayLR", "WarmupCosineLR", "OneCycle"});
  Schedule schedule;
  schedule.kind = static_cast<Kind>(type + 1);
  if (schedule.kind == Kind::kWarmup) schedule.warmup_max_lr = optimizer_lr;
  const auto given = scheduler.Find("params");
  const JsonValue params = given ? *given : JsonValue::Parse("{}", scheduler.Path() + ".params");
  switch (schedule.kind) {
    case Kind::kWarmupDecay:
      ParseWarmupDecayLr(params, schedule);
      break;
    case Kind::kWarmupCosine:
      ParseWarmupCosineLr(params, schedule);
      break;
    case Kind::kOneCycle:
      ParseOneCycle(params, schedule);
      break;
    default:
      ParseWarmupLr(params, schedule);
  }
  return schedule;
}

std::string ToJson(const Schedule& schedule) {
  return "{\"type\": " + JsonQuote(TypeOf(schedule.kind)) + ", \"params\": {" + ParamsJson(schedule) + "}}";
}

}  // namespace plumbline::contract
