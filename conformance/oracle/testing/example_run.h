// SPDX-License-Identifier: Apache-2.0
// A small run made up for tests of the oracle: arbitrary but fixed values, traced as ranks of any world and stage
// would.
#pragma once

#include <vector>

#include "conformance/contract/case_file.h"
#include "conformance/contract/digest.h"
#include "conformance/contract/trace.h"
#include "conformance/oracle/call_sequence.h"
#include "conformance/oracle/ledger_check.h"
#include "conformance/oracle/memory_formula.h"

namespace plumbline::conformance {

inline constexpr int64_t kExampleSteps = 4;

inline contract::Case ExampleCase(int64_t world, int64_t stage = 0) {
  contract::Case spec;
  spec.id = "example";
  spec.model.exact().layers = 1;
  spec.model.exact().width = 3;
  spec.model.exact().heads = spec.model.exact().kv_heads = 1;
  spec.model.exact().positions = 5;
  spec.model.exact().hidden = 7;
  spec.model.exact().vocab = 11;
  spec.config.train_batch_size = 2 * world;
  spec.config.micro_batch_size = 2;
  spec.config.data_degree = world;
  spec.config.zero_stage = stage;
  spec.config.reduce_bucket_elems = 20;
  spec.steps = kExampleSteps;
  return spec;
}

inline int64_t ExampleValue(int64_t step, int64_t kind, int64_t tensor, int64_t index) {
  return static_cast<int64_t>(contract::Mix(static_cast<uint64_t>(((step * 7 + kind) * 31 + tensor) * 1009 + index)) %
                              41) -
         20;
}

// Stage 0: every rank holds everything. Stage 1: gradient, moment and master are split evenly, weights are whole.
inline std::vector<contract::Trace> ExampleTraces(int64_t world, int64_t stage) {
  const contract::Case spec = ExampleCase(world, stage);
  const auto parameters = contract::Parameters(spec.model);
  std::vector<contract::Trace> traces;
  for (int64_t rank = 0; rank < world; ++rank) {
    contract::Trace trace{"example", rank, world, spec.config, {}, true};
    for (int64_t step = 0; step < kExampleSteps; ++step) {
      contract::StepRecord record;
      record.step = step;
      record.loss = static_cast<double>(step) + 3;
      record.tokens = 8;
      record.comm = ExpectedComm(spec.model, spec.config);
      record.memory_peak_bytes = ExpectedMemoryPeak(spec.model, spec.config);
      record.comm_sequence = SequenceOf(ExpectedCalls(spec.model, spec.config));
      for (contract::TensorKind kind : contract::kTensorKinds) {
        if (kind == contract::TensorKind::kSecondMoment) continue;
        const bool sharded = stage > 0 && kind != contract::TensorKind::kWeight;
        for (const auto& parameter : parameters) {
          const int64_t numel = parameter.numel();
          contract::SliceDigest slice{
              parameter.name, sharded ? numel * rank / world : 0, sharded ? numel * (rank + 1) / world : numel, {}};
          for (int64_t i = slice.begin; i < slice.end; ++i) {
            slice.digest.Add(i, ExampleValue(step, static_cast<int64_t>(kind), parameter.tensor_id, i));
          }
          if (slice.begin < slice.end) record.of(kind).push_back(slice);
        }
      }
      trace.steps.push_back(record);
    }
    traces.push_back(trace);
  }
  return traces;
}

}  // namespace plumbline::conformance
