// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/loss_scale_config.h"

#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include "conformance/contract/config_parsing.h"

namespace plumbline::contract {
namespace {

constexpr int64_t kMaxScale = int64_t{1} << 24;
constexpr int64_t kMaxScalePower = 60;

bool IsPowerOfTwo(int64_t value) { return value > 0 && (value & (value - 1)) == 0; }

// A power of two from 1 to 2^24, so that scaling is exact, or 0 where that has a meaning.
int64_t ParseScale(const JsonValue& value, bool may_be_zero) {
  const double number = value.Number();
  if (number == 0 && may_be_zero) return 0;
  const bool is_integer = number >= 1 && number <= kMaxScale && number == std::floor(number);
  if (!is_integer || !IsPowerOfTwo(static_cast<int64_t>(number))) {
    value.Reject(std::string(may_be_zero ? "0, or a" : "a") + " power of two from 1 to 16777216");
  }
  return static_cast<int64_t>(number);
}

DynamicLossScale ParseDynamic(const JsonValue& fp16) {
  DynamicLossScale dynamic;
  if (const auto power = fp16.Find("initial_scale_power"))
    dynamic.initial_scale_power = power->Count(0, kMaxScalePower);
  if (const auto window = fp16.Find("loss_scale_window")) dynamic.window = window->Count(1, kMaxCount);
  if (const auto hysteresis = fp16.Find("hysteresis")) dynamic.hysteresis = hysteresis->Count(1, kMaxCount);
  if (const auto consecutive = fp16.Find("consecutive_hysteresis"))
    dynamic.consecutive_hysteresis = consecutive->Bool();
  if (const auto min = fp16.Find("min_loss_scale")) {
    dynamic.min_scale = ParseScale(*min, false);
    if (dynamic.min_scale > int64_t{1} << dynamic.initial_scale_power) {
      min->Reject("at most 2^initial_scale_power, " + std::to_string(int64_t{1} << dynamic.initial_scale_power));
    }
  }
  return dynamic;
}

}  // namespace

void ParseFp16(const JsonValue& fp16, RunConfig& config) {
  CheckKeys(fp16,
            std::to_array<std::string_view>({"enabled", "loss_scale", "initial_scale_power", "loss_scale_window",
                                             "hysteresis", "consecutive_hysteresis", "min_loss_scale"}),
            "fp16");
  const auto loss_scale = fp16.Find("loss_scale");
  const int64_t scale = loss_scale ? ParseScale(*loss_scale, true) : 0;
  const DynamicLossScale dynamic = ParseDynamic(fp16);
  const auto enabled = fp16.Find("enabled");
  if (!enabled || !enabled->Bool()) return;
  if (config.storage != DType::kF32) enabled->Reject("false where another storage type is enabled");
  config.storage = DType::kF16;
  config.loss_scale = scale;
  if (scale == 0) config.dynamic_loss_scale = dynamic;
}

std::string Fp16Json(const RunConfig& config) {
  if (config.storage != DType::kF16) return "";
  std::string json = ", \"fp16\": {\"enabled\": true, \"loss_scale\": " + std::to_string(config.loss_scale);
  if (HasDynamicLossScale(config)) {
    const DynamicLossScale& dynamic = config.dynamic_loss_scale;
    json += ", \"initial_scale_power\": " + std::to_string(dynamic.initial_scale_power) +
            ", \"loss_scale_window\": " + std::to_string(dynamic.window) +
            ", \"hysteresis\": " + std::to_string(dynamic.hysteresis) +
            ", \"consecutive_hysteresis\": " + (dynamic.consecutive_hysteresis ? "true" : "false") +
            ", \"min_loss_scale\": " + std::to_string(dynamic.min_scale);
  }
  return json + "}";
}

}  // namespace plumbline::contract
