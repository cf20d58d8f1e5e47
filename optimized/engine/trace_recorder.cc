// SPDX-License-Identifier: Apache-2.0
// See trace_recorder.h. Digests and dumps walk the same list of slices, so that they cannot disagree on what a rank
// holds.
#include "optimized/engine/trace_recorder.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <span>
#include <utility>

#include "conformance/contract/error.h"
#include "conformance/contract/instrumentation.h"
#include "conformance/contract/tensor_file.h"
#include "kernels/bf16.h"

namespace plumbline::optimized {
namespace {

using contract::TensorKind;

// A cast alone would hide a state that has drifted off the integers.
int64_t ToInteger(float value) {
  constexpr float kMaxExact = 16777216;  // 2^24
  if (std::abs(value) <= kMaxExact && value == std::floor(value)) return static_cast<int64_t>(value);
  contract::Fail(contract::ErrorCode::kInternal, "a traced value is " + std::to_string(value) + ", not an integer");
}
int64_t ToInteger(kernels::BFloat16 value) { return ToInteger(kernels::ToFloat(value)); }

// Calls visit(kind, parameter, begin, values) for every slice that this rank holds.
template <typename Visit>
void ForEachHeldSlice(const Training& training, Visit visit) {
  for (const ShardSlice& slice : training.shard.slices) {
    visit(TensorKind::kGradient, slice.parameter, slice.begin, training.reducer->Complete(slice));
    if (training.optimizer->has_moment()) {
      visit(TensorKind::kMoment, slice.parameter, slice.begin, training.optimizer->Moment(slice));
    }
    visit(TensorKind::kMaster, slice.parameter, slice.begin, training.optimizer->Master(slice));
  }
  for (const WeightSlice& slice : training.weights->Held()) {
    const auto elems = static_cast<size_t>(slice.values.elems);
    if (slice.values.dtype == contract::DType::kBF16) {
      visit(TensorKind::kWeight, slice.parameter, slice.begin,
            std::span(static_cast<const kernels::BFloat16*>(slice.values.data), elems));
    } else {
      visit(TensorKind::kWeight, slice.parameter, slice.begin,
            std::span(static_cast<const float*>(slice.values.data), elems));
    }
  }
}

}  // namespace

TraceRecorder::TraceRecorder(const contract::Case& spec, int64_t rank, const std::filesystem::path& out_dir)
    : spec_(spec),
      rank_dir_(out_dir / ("rank" + std::to_string(rank))),
      writer_(out_dir, "optimized", rank, spec.config) {}

void TraceRecorder::Phase(int64_t step, std::string_view phase) {
  if (spec_.phase_marks) writer_.Phase(step, phase);
}

void TraceRecorder::Step(const Training& training, int64_t step, const StepResult& result, LedgerEntry ledger) {
  const contract::ScopedRange range(contract::Category::kIo, contract::range::kTrace);
  contract::StepRecord record;
  record.step = step;
  record.loss = result.loss;
  record.tokens = result.tokens;
  record.comm = std::move(ledger.by_kind);
  record.comm_sequence = ledger.sequence;
  record.comm_wait_us = static_cast<int64_t>(result.timings.comm_wait_us);
  for (const MemoryCategory category : kMemoryCategories) {
    record.memory_peak_bytes[std::string(Name(category))] = training.memory_ledger.of(category).peak_bytes;
  }
  ForEachHeldSlice(training, [&](TensorKind kind, int64_t parameter, int64_t begin, auto values) {
    contract::Digest digest;
    for (size_t i = 0; i < values.size(); ++i) digest.Add(begin + static_cast<int64_t>(i), ToInteger(values[i]));
    record.of(kind).push_back(
        {training.data->parameters[parameter].name, begin, begin + static_cast<int64_t>(values.size()), digest});
  });
  writer_.Step(record);
  const bool is_dumped = std::find(spec_.dump_steps.begin(), spec_.dump_steps.end(), step) != spec_.dump_steps.end();
  if (is_dumped) Dump(training, step);
}

void TraceRecorder::Dump(const Training& training, int64_t step) const {
  contract::TensorFile file;
  ForEachHeldSlice(training, [&](TensorKind kind, int64_t parameter, int64_t begin, auto values) {
    std::vector<int64_t> integers;
    for (const auto value : values) integers.push_back(ToInteger(value));
    file.tensors.push_back(contract::MakeI64(
        std::string(Name(kind)) + "/" + training.data->parameters[parameter].name + "@" + std::to_string(begin),
        {static_cast<int64_t>(integers.size())}, integers));
  });
  char name[32];
  std::snprintf(name, sizeof name, "tensors-%06lld.safetensors", static_cast<long long>(step));
  contract::WriteTensorFile(rank_dir_ / name, file);
}

}  // namespace plumbline::optimized
