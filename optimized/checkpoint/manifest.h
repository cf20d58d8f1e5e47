// SPDX-License-Identifier: Apache-2.0
// The manifest of a checkpoint: what it is of, and which shard files belong to it with their sizes and checksums. A
// folder without a manifest is not a checkpoint. Format: docs/zero3.md, "Checkpoints".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/contract/loss_scale.h"
#include "conformance/contract/norm_history.h"

namespace plumbline::optimized {

// What must be equal for a checkpoint to be resumed without resharding.
struct CheckpointIdentity {
  std::string config;  // canonical JSON of the run's config, which holds topology, stage, types and optimizer
  std::string model;   // sizes, and names and shapes of all parameters, in canonical order
  uint64_t seed = 0;

  friend bool operator==(const CheckpointIdentity&, const CheckpointIdentity&) = default;
};

// How far the run that saved had come.
struct TrainingProgress {
  int64_t finished_steps = 0;               // the number of the next step
  int64_t num_updates = 0;                  // made so far: fewer where steps were skipped
  contract::NormHistory norm_history = {};  // empty unless clipping remembers norms
  contract::LossScaler loss_scaler = {};    // as it begins unless the loss scale is dynamic

  friend bool operator==(const TrainingProgress&, const TrainingProgress&) = default;
};

struct ShardFile {
  std::string name;
  int64_t size_bytes = 0;
  uint64_t checksum = 0;

  friend bool operator==(const ShardFile&, const ShardFile&) = default;
};

struct Manifest {
  TrainingProgress progress;
  CheckpointIdentity identity;
  std::vector<ShardFile> shards;  // by rank

  friend bool operator==(const Manifest&, const Manifest&) = default;
};

std::string ToJson(const Manifest& manifest);
// InvalidArgument, beginning with `where`, if it is not a manifest.
Manifest ParseManifest(std::string_view json, std::string_view where);

// "shard-00003.safetensors": the width is fixed, so that order as text is order of ranks.
std::string ShardFileName(int64_t rank);

// Of a file's bytes; finds torn and stale files, not forgers.
uint64_t Checksum(std::string_view content);

}  // namespace plumbline::optimized
