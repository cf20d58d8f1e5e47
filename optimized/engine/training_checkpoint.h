// SPDX-License-Identifier: Apache-2.0
// What of a Training is saved, and how it comes back: master weights, moments and working weights of the rank's shard
// and the frozen weights, as slices, and the number of updates, the history of norms and the loss scaler. Gradients,
// gathered weights and activations are not saved: between steps nothing of them is needed.
#pragma once

#include <cstdint>
#include <filesystem>

#include "optimized/checkpoint/file_system.h"
#include "optimized/engine/training.h"

namespace plumbline::optimized {

// Collective, between steps. finished_steps is the number of the next step. Errors: those of SaveCheckpoint.
void SaveTraining(Training& training, int64_t finished_steps, const std::filesystem::path& folder, FileSystem& files);

// Collective, before the first step of a training built from the same case. Returns the number of the next step, which
// then gives the bits of the run that was saved. Errors: those of LoadCheckpoint.
int64_t ResumeTraining(Training& training, const std::filesystem::path& folder, FileSystem& files);

}  // namespace plumbline::optimized
