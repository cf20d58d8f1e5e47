// SPDX-License-Identifier: Apache-2.0
// See trace_recorder.h. Digests and dumps walk the same list of slices, so that they cannot disagree on what a rank
// holds. Family exact is told in integers, real families in the bits of the storage type.
#include "optimized/engine/trace_recorder.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <span>
#include <utility>

#include "conformance/contract/error.h"
#include "conformance/contract/instrumentation.h"
#include "conformance/contract/tensor_file.h"
#include "kernels/bf16.h"
#include "optimized/backend/storage_types.h"
#include "optimized/optimizer/schedule.h"

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
int64_t ToInteger(kernels::Float16 value) { return ToInteger(kernels::ToFloat(value)); }

uint64_t Bits(float value) { return std::bit_cast<uint32_t>(value); }
uint64_t Bits(kernels::BFloat16 value) { return value.bits; }
uint64_t Bits(kernels::Float16 value) { return value.bits; }

template <typename Values>
contract::Digest DigestOf(bool is_exact, int64_t begin, const Values& values) {
  contract::Digest digest;
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t index = begin + static_cast<int64_t>(i);
    if (is_exact) {
      digest.Add(index, ToInteger(values[i]));
    } else {
      digest.AddBits(index, Bits(values[i]));
    }
  }
  return digest;
}

template <typename Values>
contract::HostTensor DumpOf(bool is_exact, const std::string& name, const Values& values) {
  const std::vector<int64_t> shape = {static_cast<int64_t>(values.size())};
  if (is_exact) {
    std::vector<int64_t> integers;
    for (const auto value : values) integers.push_back(ToInteger(value));
    return contract::MakeI64(name, shape, integers);
  }
  const auto bytes = std::as_bytes(std::span(values));
  return {name, kDTypeOf<std::remove_cvref_t<decltype(values[0])>>, shape, {bytes.begin(), bytes.end()}};
}

contract::RealStep RealStepOf(const contract::RunConfig& config, int64_t step, const StepResult& result) {
  contract::RealStep real;
  real.lr.push_back(LearningRate(config, config.params.lr, step));
  for (const contract::ParameterGroup& group : config.groups) {
    real.lr.push_back(LearningRate(config, group.lr.value_or(config.params.lr), step));
  }
  real.gradient_norm = result.gradient_norm;
  real.skipped = result.skipped;
  return real;
}

// Calls visit(kind, parameter, begin, values) for every slice that this rank holds. Frozen parameters have no master
// copy in the engine's memory: theirs is the number in the case.
template <typename Visit>
void ForEachHeldSlice(const Training& training, Visit visit) {
  for (const ShardSlice& slice : training.shard.slices) {
    visit(TensorKind::kGradient, slice.parameter, slice.begin, training.reducer->Complete(slice));
    if (training.optimizer->has_moment()) {
      visit(TensorKind::kMoment, slice.parameter, slice.begin, training.optimizer->Moment(slice));
    }
    if (training.optimizer->has_second_moment()) {
      visit(TensorKind::kSecondMoment, slice.parameter, slice.begin, training.optimizer->SecondMoment(slice));
    }
    visit(TensorKind::kMaster, slice.parameter, slice.begin, training.optimizer->Master(slice));
  }
  for (const FrozenPlace& place : training.frozen.places) {
    visit(TensorKind::kMaster, place.parameter, 0, std::span(training.data->real_state[place.parameter].master));
  }
  for (const WeightSlice& slice : training.weights->Held()) {
    const auto elems = static_cast<size_t>(slice.values.elems);
    VisitStorage(slice.values.dtype, [&](auto type) {
      visit(TensorKind::kWeight, slice.parameter, slice.begin,
            std::span(static_cast<const decltype(type)*>(slice.values.data), elems));
    });
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
  const bool is_exact = spec_.model.is_exact();
  if (!is_exact) record.real = RealStepOf(spec_.config, step, result);
  if (contract::HasNormHistory(spec_.config)) record.real->norm_history = training.norm_history;
  if (contract::HasDynamicLossScale(spec_.config)) record.real->loss_scaler = training.loss_scaler;
  record.comm = std::move(ledger.by_kind);
  record.comm_sequence = ledger.sequence;
  record.comm_wait_us = static_cast<int64_t>(result.timings.comm_wait_us);
  for (const MemoryCategory category : kMemoryCategories) {
    record.memory_peak_bytes[std::string(Name(category))] = training.memory_ledger.of(category).peak_bytes;
  }
  ForEachHeldSlice(training, [&](TensorKind kind, int64_t parameter, int64_t begin, auto values) {
    const contract::Digest digest = DigestOf(is_exact, begin, values);
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
    const std::string name =
        std::string(Name(kind)) + "/" + training.data->parameters[parameter].name + "@" + std::to_string(begin);
    file.tensors.push_back(DumpOf(spec_.model.is_exact(), name, values));
  });
  char name[32];
  std::snprintf(name, sizeof name, "tensors-%06lld.safetensors", static_cast<long long>(step));
  contract::WriteTensorFile(rank_dir_ / name, file);
}

}  // namespace plumbline::optimized
