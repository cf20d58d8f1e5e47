// SPDX-License-Identifier: Apache-2.0
// The data of a run, step by step, as engines read it from batches.safetensors.
// Where it comes from (text, token file, weights by rank) is batch_source.h; engines need only this.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace plumbline::contract {

// Each array is [steps, batch, positions], row-major.
struct Batches {
  int64_t steps = 0;
  int64_t batch = 0;
  int64_t positions = 0;
  std::vector<int32_t> tokens;
  std::vector<int32_t> labels;
  std::vector<int32_t> loss_weights;  // 0, N or 5N, N the number of non-zero ones of the step

  int64_t first_step = 0;  // what the first of the steps is called; not in the file

  // `step` counts as the case does, from first_step.
  int64_t Index(int64_t step, int64_t sample, int64_t position) const {
    return ((step - first_step) * batch + sample) * positions + position;
  }
};

// Token and label values are checked against [0, vocab), weights against >= 0.
Batches ReadBatches(const std::filesystem::path& path, int64_t vocab);
void WriteBatches(const std::filesystem::path& path, const Batches& batches);

}  // namespace plumbline::contract
