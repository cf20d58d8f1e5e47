// SPDX-License-Identifier: Apache-2.0
// The data of a run, step by step, as engines read it from batches.safetensors.
// Where it comes from (text, token file, weights by rank) is batch_source.h; engines need only this.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace plumbline::contract {

// Each array but lengths is [steps, batch, positions], row-major.
struct Batches {
  int64_t steps = 0;
  int64_t batch = 0;
  int64_t positions = 0;
  std::vector<int32_t> tokens;
  std::vector<int32_t> labels;
  std::vector<int32_t> loss_weights;  // 0, N or 5N, N the number of non-zero ones of the step

  int64_t first_step = 0;  // what the first of the steps is called; not in the file

  // [steps, batch]: tokens of each sample, 1 to positions; what is behind them is padding with loss weights of 0. Empty
  // where all samples have `positions`.
  std::vector<int32_t> lengths = {};

  // `step` counts as the case does, from first_step.
  int64_t Index(int64_t step, int64_t sample, int64_t position) const {
    return ((step - first_step) * batch + sample) * positions + position;
  }

  int64_t Length(int64_t step, int64_t sample) const {
    return lengths.empty() ? positions : lengths[static_cast<size_t>((step - first_step) * batch + sample)];
  }
};

// Makes a sample of one step a copy of a sample of another. Both have the same positions and both have lengths or none.
struct SampleIndex {
  int64_t step = 0;
  int64_t sample = 0;
};
void CopySample(const Batches& source, SampleIndex from, Batches& target, SampleIndex to);

// Token and label values are checked against [0, vocab), weights against >= 0, and lengths, where there must be some,
// against [1, positions]; padding must have weights of 0.
Batches ReadBatches(const std::filesystem::path& path, int64_t vocab, bool has_lengths);
void WriteBatches(const std::filesystem::path& path, const Batches& batches);

}  // namespace plumbline::contract
