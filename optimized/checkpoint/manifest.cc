// SPDX-License-Identifier: Apache-2.0
// See manifest.h.
#include "optimized/checkpoint/manifest.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "conformance/contract/digest.h"
#include "conformance/contract/error.h"
#include "conformance/contract/strict_json.h"

namespace plumbline::optimized {
namespace {

constexpr int64_t kFormat = 4;
// Of steps, updates, norms and overflows: beyond what a case can reach (docs/formats.md), so that one more can be
// counted.
constexpr int64_t kMaxCount = int64_t{1} << 41;

std::string Hex(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

uint64_t ParseHex(const contract::JsonValue& value) {
  const std::string text = value.String();
  if (text.size() != 16 || text.find_first_not_of("0123456789abcdef") != std::string::npos) {
    value.Reject("sixteen hexadecimal digits");
  }
  return std::stoull(text, nullptr, 16);
}

std::string HistoryJson(const contract::NormHistory& history) {
  return "[" + std::to_string(history.count) + ", " + contract::JsonNumber(history.mean) + ", " +
         contract::JsonNumber(history.variance) + "]";
}

contract::NormHistory ParseHistory(const contract::JsonValue& value) {
  if (value.Size() != 3) value.Reject("a count, a mean and a variance");
  return {value[0].Int(0, kMaxCount), value[1].Number(), value[2].Number()};
}

std::string ScalerJson(const contract::LossScaler& scaler) {
  return "[" + contract::JsonNumber(scaler.scale) + ", " + std::to_string(scaler.steps) + ", " +
         std::to_string(scaler.last_overflow) + ", " + std::to_string(scaler.hysteresis) + "]";
}

contract::LossScaler ParseScaler(const contract::JsonValue& value) {
  if (value.Size() != 4) value.Reject("a scale, a count of steps, the last overflow and the overflows left");
  const double scale = value[0].Number();
  int exponent = 0;
  const bool is_power = scale >= 1 && scale <= 0x1p126 && std::frexp(scale, &exponent) == 0.5;
  if (!is_power) value[0].Reject("a power of two from 1 to 2^126");
  const int64_t steps = value[1].Int(0, kMaxCount);
  return {scale, steps, value[2].Int(-1, steps - 1), value[3].Int(1, kMaxCount)};
}

}  // namespace

std::string ToJson(const Manifest& manifest) {
  std::string json = "{\"checkpoint\": " + std::to_string(kFormat) +
                     ",\n \"finished_steps\": " + std::to_string(manifest.progress.finished_steps) +
                     ",\n \"num_updates\": " + std::to_string(manifest.progress.num_updates) +
                     ",\n \"norm_history\": " + HistoryJson(manifest.progress.norm_history) +
                     ",\n \"loss_scaler\": " + ScalerJson(manifest.progress.loss_scaler) +
                     ",\n \"config\": " + contract::JsonQuote(manifest.identity.config) +
                     ",\n \"model\": " + contract::JsonQuote(manifest.identity.model) +
                     ",\n \"seed\": " + contract::JsonQuote(Hex(manifest.identity.seed)) + ",\n \"shards\": [";
  for (size_t i = 0; i < manifest.shards.size(); ++i) {
    const ShardFile& shard = manifest.shards[i];
    json += (i == 0 ? "\n  " : ",\n  ") + ("{\"file\": " + contract::JsonQuote(shard.name)) +
            ", \"bytes\": " + std::to_string(shard.size_bytes) +
            ", \"checksum\": " + contract::JsonQuote(Hex(shard.checksum)) + "}";
  }
  return json + "]}\n";
}

Manifest ParseManifest(std::string_view json, std::string_view where) {
  const contract::JsonValue root = contract::JsonValue::Parse(json, where);
  root.AllowOnly({"checkpoint", "finished_steps", "num_updates", "norm_history", "loss_scaler", "config", "model",
                  "seed", "shards"});
  root.At("checkpoint").Int(kFormat, kFormat);
  Manifest manifest;
  manifest.progress = {root.At("finished_steps").Int(1, kMaxCount), root.At("num_updates").Int(0, kMaxCount),
                       ParseHistory(root.At("norm_history")), ParseScaler(root.At("loss_scaler"))};
  manifest.identity = {root.At("config").String(), root.At("model").String(), ParseHex(root.At("seed"))};
  const contract::JsonValue shards = root.At("shards");
  for (size_t i = 0; i < shards.Size(); ++i) {
    shards[i].AllowOnly({"file", "bytes", "checksum"});
    const std::string name = shards[i].At("file").String();
    // Also keeps a name from leading out of the folder.
    if (name != ShardFileName(static_cast<int64_t>(i))) {
      shards[i].At("file").Reject(ShardFileName(static_cast<int64_t>(i)));
    }
    manifest.shards.push_back({name, shards[i].At("bytes").Int(0), ParseHex(shards[i].At("checksum"))});
  }
  return manifest;
}

std::string ShardFileName(int64_t rank) {
  char name[40];
  std::snprintf(name, sizeof name, "shard-%05lld.safetensors", static_cast<long long>(rank));
  return name;
}

uint64_t Checksum(std::string_view content) {
  uint64_t sum = content.size();
  for (size_t i = 0; i < content.size(); i += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, content.data() + i, std::min(sizeof word, content.size() - i));
    sum = contract::Mix(sum + 0x9E3779B97F4A7C15ull) ^ contract::Mix(word);
  }
  return contract::Mix(sum);
}

}  // namespace plumbline::optimized
