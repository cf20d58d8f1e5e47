// SPDX-License-Identifier: Apache-2.0
// Saving and resuming at the same topology. A checkpoint is a folder: one shard file per rank, then the manifest. It
// knows slices and files, not what is trained. It does not reshard.
//
//   SaveCheckpoint(folder, {finished_steps, num_updates}, identity, slices, rank's communicator, timeout, files);
//   const TrainingProgress progress = LoadCheckpoint(folder, identity, slices, rank, world, files);
//
// Order of a save: every rank writes and syncs its shard; when all have, rank 0 writes and syncs the manifest under
// another name and renames it; when that is durable, all ranks return. A crash anywhere leaves a folder without
// manifest, which nobody takes for a checkpoint, or a complete one.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "optimized/checkpoint/file_system.h"
#include "optimized/checkpoint/manifest.h"
#include "optimized/comm/communicator.h"

namespace plumbline::optimized {

// Memory of one slice that a rank holds. Padding belongs to no slice.
struct CheckpointSlice {
  std::string name;  // KIND/NAME@BEGIN, as in docs/formats.md
  Buffer values;
};

inline constexpr const char* kManifestName = "manifest.json";

// Collective: every rank calls it, with the same folder, progress and identity. InvalidArgument if the folder holds a
// finished checkpoint already: none is ever overwritten.
void SaveCheckpoint(const std::filesystem::path& folder, const TrainingProgress& progress,
                    const CheckpointIdentity& identity, const std::vector<CheckpointSlice>& slices,
                    Communicator& communicator, std::chrono::duration<double> timeout, FileSystem& files);

// Fills the slices and returns the progress of the run that saved. Nothing is written before everything has been
// checked: Unsupported if the checkpoint is of another config, model, seed or world; InvalidArgument if manifest or
// shard is missing, torn, stale, or does not hold exactly these slices.
TrainingProgress LoadCheckpoint(const std::filesystem::path& folder, const CheckpointIdentity& identity,
                                const std::vector<CheckpointSlice>& slices, int64_t rank, int64_t world,
                                FileSystem& files);

}  // namespace plumbline::optimized
