// SPDX-License-Identifier: Apache-2.0
// Folders as engines leave them, for tests of what is made of them: traces, and dumps of tensors. No engine runs here.
#pragma once

#include <bit>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "conformance/contract/case_file.h"
#include "conformance/contract/tensor_file.h"
#include "conformance/contract/trace.h"

namespace plumbline::conformance {

inline void WriteTraces(const std::filesystem::path& out_dir, const std::vector<contract::Trace>& traces) {
  for (const contract::Trace& trace : traces) {
    contract::TraceWriter writer(out_dir, trace.engine, trace.rank, trace.config);
    for (const contract::StepRecord& step : trace.steps) writer.Step(step);
    writer.End(static_cast<int64_t>(trace.steps.size()));
  }
}

inline std::filesystem::path DumpPath(const std::filesystem::path& out_dir, int64_t rank, int64_t step) {
  return out_dir / contract::DumpName(rank, step);
}

// A value's bits as it is stored in this type (kF64, kF32, kBF16; one that bf16 does not hold is cut).
inline uint64_t BitsOf(double value, contract::DType type) {
  if (type == contract::DType::kF64) return std::bit_cast<uint64_t>(value);
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  return type == contract::DType::kBF16 ? bits >> 16 : bits;
}

inline contract::HostTensor MakeTensor(const std::string& name, contract::DType type,
                                       const std::vector<double>& values) {
  contract::HostTensor tensor{name, type, {static_cast<int64_t>(values.size())}, {}};
  for (double value : values) {
    const uint64_t bits = BitsOf(value, type);  // this machine is little-endian
    const auto* bytes = reinterpret_cast<const std::byte*>(&bits);
    tensor.data.insert(tensor.data.end(), bytes, bytes + contract::SizeBytes(type));
  }
  return tensor;
}

// What dumps of family exact hold, by rank, step, kind, tensor and index; every rank holds whole tensors.
using ExactValue =
    std::function<int64_t(int64_t rank, int64_t step, contract::TensorKind kind, size_t tensor, int64_t index)>;
using ExactLoss = std::function<double(int64_t rank, int64_t step)>;

// What a rank's record of a step lists of whole tensors.
inline void ListWhole(const contract::Case& spec, int64_t rank, const ExactValue& value, contract::StepRecord& record) {
  for (contract::TensorKind kind : contract::kTensorKinds) {
    if (kind == contract::TensorKind::kSecondMoment) continue;
    for (const contract::ParameterSpec& parameter : contract::Parameters(spec.model)) {
      contract::SliceDigest slice{parameter.name, 0, parameter.numel(), {}};
      const auto tensor = static_cast<size_t>(parameter.tensor_id);
      for (int64_t i = 0; i < parameter.numel(); ++i) slice.digest.Add(i, value(rank, record.step, kind, tensor, i));
      record.of(kind).push_back(slice);
    }
  }
}

// Dumps of these steps, which must be in ascending order, and traces from the first to the last, which state `traced`.
inline void WriteExactDumps(const contract::Case& spec, const std::filesystem::path& out_dir,
                            const std::vector<int64_t>& steps, const ExactValue& value, const ExactLoss& loss,
                            const ExactValue& traced) {
  const std::vector<contract::ParameterSpec> parameters = contract::Parameters(spec.model);
  for (int64_t rank = 0; rank < spec.config.world_size(); ++rank) {
    contract::Trace trace{"example", rank, spec.config.world_size(), spec.config, {}, true};
    for (int64_t step = steps.empty() ? 0 : steps.front(); !steps.empty() && step <= steps.back(); ++step) {
      trace.steps.emplace_back();
      trace.steps.back().step = step;
      trace.steps.back().loss = loss(rank, step);
      ListWhole(spec, rank, traced, trace.steps.back());
    }
    WriteTraces(out_dir, {trace});
    for (int64_t step : steps) {
      contract::TensorFile file;
      for (contract::TensorKind kind : contract::kTensorKinds) {
        if (kind == contract::TensorKind::kSecondMoment) continue;
        for (size_t i = 0; i < parameters.size(); ++i) {
          std::vector<int64_t> values;
          for (int64_t k = 0; k < parameters[i].numel(); ++k) values.push_back(value(rank, step, kind, i, k));
          file.tensors.push_back(contract::MakeI64(std::string(contract::Name(kind)) + "/" + parameters[i].name + "@0",
                                                   {parameters[i].numel()}, values));
        }
      }
      contract::WriteTensorFile(DumpPath(out_dir, rank, step), file);
    }
  }
}

inline void WriteExactDumps(const contract::Case& spec, const std::filesystem::path& out_dir,
                            const std::vector<int64_t>& steps, const ExactValue& value, const ExactLoss& loss) {
  WriteExactDumps(spec, out_dir, steps, value, loss, value);
}

// Traces of a run of family exact: every rank holds everything, drawn by step. No books are kept.
inline std::vector<contract::Trace> ExactTraces(const contract::Case& spec) {
  std::vector<contract::Trace> traces;
  for (int64_t rank = 0; rank < spec.config.world_size(); ++rank) {
    contract::Trace& trace = traces.emplace_back();
    trace = {"example", rank, spec.config.world_size(), spec.config, {}, true};
    for (int64_t step = spec.first_step; step < spec.first_step + spec.steps; ++step) {
      contract::StepRecord& record = trace.steps.emplace_back();
      record.step = step;
      record.loss = static_cast<double>(step) + 3;
      record.tokens = 8;
      const ExactValue drawn = [](int64_t, int64_t at, contract::TensorKind kind, size_t tensor, int64_t i) {
        const int64_t seed = ((at * 8 + static_cast<int64_t>(kind)) * 64 + static_cast<int64_t>(tensor)) * 4096 + i;
        return static_cast<int64_t>(contract::Mix(static_cast<uint64_t>(seed)) % 41) - 20;
      };
      ListWhole(spec, trace.rank, drawn, record);
    }
  }
  return traces;
}

// The digest of a tensor in one rank's record of a step, to be changed.
inline contract::Digest& DigestIn(contract::Trace& trace, size_t step, contract::TensorKind kind, size_t tensor) {
  return trace.steps.at(step).of(kind).at(tensor).digest;
}

}  // namespace plumbline::conformance
