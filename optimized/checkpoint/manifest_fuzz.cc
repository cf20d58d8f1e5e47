// SPDX-License-Identifier: Apache-2.0
// Fuzz target: the manifest of a checkpoint. What is accepted names files of its own folder only.
#include "conformance/contract/fuzz/only_errors.h"
#include "optimized/checkpoint/manifest.h"

namespace plumbline::contract::fuzz {

bool Accepts(const uint8_t* data, size_t size) {
  const auto manifest = ParseOrRefuse([&] { return optimized::ParseManifest(Text(data, size), "input"); });
  if (!manifest.has_value()) return false;
  Demand(DemandRoundTrip(optimized::ParseManifest, *manifest) == *manifest, "parse(ToJson(x)) == x");
  for (const optimized::ShardFile& shard : manifest->shards) {
    Demand(shard.name.find('/') == std::string::npos && shard.size_bytes >= 0, "a shard is a file of the folder");
  }
  return true;
}

}  // namespace plumbline::contract::fuzz
