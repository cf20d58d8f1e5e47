// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/exact_cases.h"

#include <algorithm>
#include <array>

#include "conformance/cases/covering.h"
#include "conformance/contract/error.h"

namespace plumbline::conformance {
namespace {

using contract::DType;
using contract::OptimizerKind;
using contract::RunConfig;

constexpr std::array<int64_t, 5> kDataDegrees = {1, 2, 3, 4, 8};
// Stage 3 twice: everything stays gathered within a step, and as little as possible does (small parameters are
// persistent).
constexpr std::array<const char*, 5> kZeroStages = {"0", "1", "2", "3", "3tight"};
constexpr size_t kFirstStage3 = 3;
constexpr std::array<int64_t, 3> kAccumulations = {1, 3, 4};

// reduce_bucket_size against the number of elements of layers.0.mlp.up, the largest parameter of a layer.
constexpr std::array<const char*, 4> kBuckets = {"below", "at", "above", "all"};
constexpr std::array<const char*, 2> kStorages = {"fp32", "bf16"};

// Sizes are chosen so that few numels divide by 3, 4 or 8, and batches so that every pair of degrees occurs.
std::vector<Problem> Problems() {
  const auto model = [](int64_t layers, int64_t width, int64_t heads, int64_t kv_heads, int64_t positions,
                        int64_t hidden, int64_t vocab) {
    contract::ExactSpec spec;
    spec.layers = layers;
    spec.width = width;
    spec.heads = heads;
    spec.kv_heads = kv_heads;
    spec.positions = positions;
    spec.hidden = hidden;
    spec.vocab = vocab;
    // Above the guide's 4, so that gradients leave the integers that bf16 holds: an accumulator in bf16 must show.
    spec.gradient_fold_bound = 10;
    return spec;
  };
  std::vector<Problem> problems;
  problems.push_back({"dense-v19", model(2, 12, 3, 3, 8, 19, 19), OptimizerKind::kModularMomentum, 24});
  problems.push_back({"grouped-v5", model(2, 20, 4, 2, 7, 27, 5), OptimizerKind::kModularMomentum, 36});
  problems.back().model.dropout = true;
  problems.push_back({"sgd-v19", model(1, 15, 3, 1, 9, 23, 19), OptimizerKind::kModularSgd, 32});
  problems.push_back({"wide-v5", model(2, 14, 2, 2, 8, 17, 5), OptimizerKind::kModularMomentum, 24});
  // Far beyond what bf16 and TF32 hold: an engine that rounds the inputs of its fp32 products must show.
  problems.back().model.weight_bound = 2501;
  problems.back().model.fold_bound = 301;
  problems.back().model.gradient_fold_bound = 61;
  return problems;
}

enum AxisIndex { kProblemAxis, kDataAxis, kZeroAxis, kAccumulationAxis, kBucketAxis, kStorageAxis };

template <typename Values>
Axis MakeAxis(const char* name, const Values& values) {
  Axis axis{name, {}};
  for (const auto& value : values) {
    if constexpr (std::is_convertible_v<decltype(value), std::string>) {
      axis.values.push_back(value);
    } else {
      axis.values.push_back(std::to_string(value));
    }
  }
  return axis;
}

std::vector<Axis> Axes(const std::vector<Problem>& problems) {
  Axis problem{"problem", {}};
  for (const Problem& entry : problems) problem.values.push_back(entry.name);
  return {problem,
          MakeAxis("data", kDataDegrees),
          MakeAxis("zero", kZeroStages),
          MakeAxis("accumulation", kAccumulations),
          MakeAxis("bucket", kBuckets),
          MakeAxis("storage", kStorages)};
}

size_t At(const Row& row, AxisIndex axis) { return static_cast<size_t>(row[axis]); }

// Why a row is left out: the batch must divide, and wide bounds leave the integers that bf16 holds.
bool IsValid(const std::vector<Problem>& problems, const Row& row) {
  const Problem& problem = problems[At(row, kProblemAxis)];
  const int64_t parts = kDataDegrees[At(row, kDataAxis)] * kAccumulations[At(row, kAccumulationAxis)];
  if (problem.batch % parts != 0) return false;
  return !(problem.model.weight_bound > 1 && At(row, kStorageAxis) == 1);
}

int64_t BucketElems(const Problem& problem, size_t bucket_index) {
  const int64_t numel = problem.model.width * problem.model.hidden;
  const std::array<int64_t, 4> sizes = {numel - 1, numel, numel + 1, RunConfig{}.reduce_bucket_elems};
  return sizes[bucket_index];
}

void SetZero(const Problem& problem, size_t zero_index, RunConfig& config) {
  config.zero_stage = static_cast<int64_t>(std::min(zero_index, kFirstStage3));
  if (zero_index < kFirstStage3) return;
  const bool tight = zero_index > kFirstStage3;
  const int64_t projection = problem.model.width * problem.model.width;
  config.persistence_threshold_elems = tight ? projection : 0;  // projections that are no smaller are sharded
  config.prefetch_bucket_elems = tight ? 2 * projection : RunConfig{}.prefetch_bucket_elems;
  config.max_live_elems = tight ? 8 * projection : RunConfig{}.max_live_elems;
}

CaseSpec MakeCase(const std::vector<Problem>& problems, const std::vector<Axis>& axes, const Row& row) {
  const Problem& problem = problems[At(row, kProblemAxis)];
  CaseSpec spec;
  spec.problem = row[kProblemAxis];
  spec.config = PlainConfig(problem);
  spec.config.data_degree = kDataDegrees[At(row, kDataAxis)];
  SetZero(problem, At(row, kZeroAxis), spec.config);
  spec.config.accumulation_steps = kAccumulations[At(row, kAccumulationAxis)];
  spec.config.micro_batch_size = problem.batch / spec.config.data_degree / spec.config.accumulation_steps;
  spec.config.reduce_bucket_elems = BucketElems(problem, At(row, kBucketAxis));
  spec.config.storage = At(row, kStorageAxis) == 1 ? DType::kBF16 : DType::kF32;
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    spec.axes.emplace_back(axes[axis].name, axes[axis].values[static_cast<size_t>(row[axis])]);
  }
  spec.id = "exact/" + problem.name + "/data" + spec.axes[kDataAxis].second + "-zero" + spec.axes[kZeroAxis].second +
            "-acc" + spec.axes[kAccumulationAxis].second + "-bucket_" + spec.axes[kBucketAxis].second + "-" +
            spec.axes[kStorageAxis].second;
  return spec;
}

}  // namespace

RunConfig PlainConfig(const Problem& problem) {
  RunConfig config;
  config.train_batch_size = problem.batch;
  config.micro_batch_size = problem.batch;
  config.optimizer = problem.optimizer;
  return config;
}

CaseList ExactCases() {
  CaseList list;
  list.problems = Problems();
  const std::vector<Axis> axes = Axes(list.problems);
  constexpr int kStrength = 3;
  const Covering covering = CoverTuples(axes, kStrength, [&](const Row& row) { return IsValid(list.problems, row); });
  for (const Row& row : covering.rows) list.cases.push_back(MakeCase(list.problems, axes, row));
  list.num_triples = covering.num_tuples;
  list.excluded = covering.excluded;
  return list;
}

}  // namespace plumbline::conformance
