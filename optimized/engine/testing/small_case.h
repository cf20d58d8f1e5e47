// SPDX-License-Identifier: Apache-2.0
// A small case of family exact in any layout, and ranks as threads that train it without folders or traces.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "conformance/contract/batch_source.h"
#include "conformance/contract/case_file.h"
#include "optimized/comm/thread_communicator.h"
#include "optimized/engine/parallelize.h"
#include "optimized/engine/train_step.h"

namespace plumbline::optimized::testing {

inline constexpr int64_t kBatch = 12;
inline constexpr int64_t kSteps = 4;
inline constexpr int64_t kNoLimit = 500000000;

// Of RunConfig.
struct Limits {
  bool overlap_comm = true;
  int64_t prefetch_bucket_elems = 50'000'000;
  int64_t persistence_threshold_elems = 100'000;
  int64_t max_live_elems = 1'000'000'000;
};

struct Layout {
  int64_t data_degree = 1;
  int64_t zero_stage = 0;
  int64_t accumulation = 1;
  contract::DType storage = contract::DType::kF32;
  int64_t bucket_elems = kNoLimit;
  Limits limits = {};
  std::vector<int64_t> layer_stages = {};
};

inline std::string Text(const Layout& layout) {
  std::string layers;
  for (const int64_t stage : layout.layer_stages) layers += (layers.empty() ? " layers " : ",") + std::to_string(stage);
  return "data " + std::to_string(layout.data_degree) + " zero " + std::to_string(layout.zero_stage) + layers +
         " accumulation " + std::to_string(layout.accumulation) + " " + std::string(contract::Name(layout.storage)) +
         " bucket " + std::to_string(layout.bucket_elems) + (layout.limits.overlap_comm ? "" : " no overlap") +
         " prefetch " + std::to_string(layout.limits.prefetch_bucket_elems) + " persistence " +
         std::to_string(layout.limits.persistence_threshold_elems) + " live " +
         std::to_string(layout.limits.max_live_elems);
}

// Deliberately indivisible sizes: parameters of 156, 60, 144, 48, 48, 144, 132 and 132 elements.
inline contract::ExactSpec SmallSpec() {
  return {.layers = 2, .width = 12, .heads = 6, .kv_heads = 2, .positions = 5, .hidden = 11, .vocab = 13};
}

inline contract::CaseData MakeCase(const Layout& layout, contract::OptimizerKind optimizer, bool dropout,
                                   contract::ExactSpec spec = SmallSpec()) {
  contract::CaseData data;
  data.spec.id = "small_case";
  spec.dropout = dropout;
  data.spec.model = spec;
  contract::RunConfig& config = data.spec.config;
  config.train_batch_size = kBatch;
  config.data_degree = layout.data_degree;
  config.accumulation_steps = layout.accumulation;
  config.micro_batch_size = kBatch / layout.data_degree / layout.accumulation;
  config.zero_stage = layout.zero_stage;
  config.layer_stages = layout.layer_stages;
  config.storage = layout.storage;
  config.loss_scale = layout.storage == contract::DType::kF16 ? 64 : 1;
  config.reduce_bucket_elems = layout.bucket_elems;
  config.optimizer = optimizer;
  config.overlap_comm = layout.limits.overlap_comm;
  config.prefetch_bucket_elems = layout.limits.prefetch_bucket_elems;
  config.persistence_threshold_elems = layout.limits.persistence_threshold_elems;
  config.max_live_elems = layout.limits.max_live_elems;
  data.spec.seed = 11;
  data.spec.steps = kSteps;
  data.spec.timeout_s = 30;
  data.parameters = contract::Parameters(data.spec.model);
  data.state = contract::MakeInitialState(spec, optimizer, data.spec.seed);
  contract::TokenSource text;
  text.reduce_modulo_vocab = true;
  for (int i = 0; i < 997; ++i) text.tokens.push_back(i * i % 251);
  data.batches = contract::MakeBatches(text, data.spec.model, {data.spec.seed, 0, kSteps, kBatch});
  return data;
}

inline contract::CaseData MakeCase(const Layout& layout) {
  return MakeCase(layout, contract::OptimizerKind::kModularMomentum, true);
}

// Everything that a rank holds: "kind/parameter@begin" -> bytes.
using HeldState = std::map<std::string, std::vector<std::byte>>;

inline HeldState StateOf(const Training& training) {
  HeldState state;
  const auto add = [&](const std::string& kind, int64_t parameter, int64_t begin, const void* data, size_t size_bytes) {
    std::vector<std::byte> bytes(size_bytes);
    std::memcpy(bytes.data(), data, size_bytes);
    state[kind + "/" + std::to_string(parameter) + "@" + std::to_string(begin)] = std::move(bytes);
  };
  for (const ShardSlice& slice : training.shard.slices) {
    const auto master = training.optimizer->Master(slice);
    add("master", slice.parameter, slice.begin, master.data(), master.size_bytes());
    if (!training.optimizer->has_moment()) continue;
    const auto moment = training.optimizer->Moment(slice);
    add("moment", slice.parameter, slice.begin, moment.data(), moment.size_bytes());
    if (!training.optimizer->has_second_moment()) continue;
    const auto second_moment = training.optimizer->SecondMoment(slice);
    add("second_moment", slice.parameter, slice.begin, second_moment.data(), second_moment.size_bytes());
  }
  for (const WeightSlice& slice : training.weights->Held()) {
    add("weight", slice.parameter, slice.begin, slice.values.data, static_cast<size_t>(slice.values.size_bytes()));
  }
  return state;
}

using Wrap = std::function<std::unique_ptr<Communicator>(std::unique_ptr<Communicator>)>;
inline std::unique_ptr<Communicator> NoWrap(std::unique_ptr<Communicator> inner) { return inner; }

// Builds the training of every rank, each in a thread of its own, and runs body in it. An error of a rank is a failure
// of the test; the other ranks are released.
inline void RunRanks(const contract::CaseData& data, const std::function<void(Training&)>& body,
                     const Wrap& wrap = NoWrap) {
  std::vector<std::unique_ptr<Communicator>> ranks;
  for (auto& rank :
       MakeThreadCommunicators(data.spec.config.data_degree,
                               data.spec.config.overlap_comm ? Progress::kOwnThread : Progress::kLastArriver)) {
    ranks.push_back(wrap(std::move(rank)));
  }
  std::vector<std::jthread> threads;
  for (const auto& rank : ranks) {
    threads.emplace_back([&data, &body, communicator = rank.get()] {
      std::unique_ptr<Training> training;
      try {
        training = Parallelize(data, *communicator);
        body(*training);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << communicator->rank() << ": " << error.what();
        communicator->Abort(error.what());
      }
    });
  }
}

inline StepResult Step(Training& training, int64_t step) {
  return TrainStep(training, step, [](std::string_view) {});
}

}  // namespace plumbline::optimized::testing
