// SPDX-License-Identifier: Apache-2.0
// The trace of one rank: trace.jsonl, written and flushed once a step (it is the engine's heartbeat), and read back by
// the harness. Also the reference's certificate.json. Formats: docs/formats.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/contract/digest.h"
#include "conformance/contract/run_config.h"

namespace plumbline::contract {

enum class TensorKind { kGradient, kMoment, kMaster, kWeight };
inline constexpr TensorKind kTensorKinds[] = {TensorKind::kGradient, TensorKind::kMoment, TensorKind::kMaster,
                                              TensorKind::kWeight};
std::string_view Name(TensorKind kind);  // "gradient", "moment", "master", "weight"

// [begin, end) of a tensor, row-major indices in the whole tensor. Sums are written for gradients only.
struct SliceDigest {
  std::string tensor;
  int64_t begin = 0;
  int64_t end = 0;
  Digest digest;
};

struct CommCount {
  int64_t calls = 0;
  int64_t bytes = 0;
  friend bool operator==(const CommCount&, const CommCount&) = default;
};

struct StepRecord {
  int64_t step = 0;
  double loss = 0;
  int64_t tokens = 0;
  std::vector<SliceDigest> slices[4];                    // indexed by TensorKind
  std::optional<std::map<std::string, CommCount>> comm;  // kinds that were called
  uint64_t comm_sequence = 0;

  std::vector<SliceDigest>& of(TensorKind kind) { return slices[static_cast<int>(kind)]; }
  const std::vector<SliceDigest>& of(TensorKind kind) const { return slices[static_cast<int>(kind)]; }
};

class TraceWriter {
 public:
  // Creates OUT_DIR/rankR and the file, and writes the header. Throws Environment if it cannot.
  TraceWriter(const std::filesystem::path& out_dir, std::string_view engine, int64_t rank, const RunConfig& config);
  void Phase(int64_t step, std::string_view phase);
  void Step(const StepRecord& record);  // flushes
  void End(int64_t steps);

 private:
  void Line(const std::string& json);
  std::filesystem::path path_;
  std::ofstream file_;
};

struct Trace {
  std::string engine;
  int64_t rank = 0;
  int64_t world = 0;
  RunConfig config;
  std::vector<StepRecord> steps;  // consecutive from step 0
  bool complete = false;          // the end record was read and counts the steps
};

// A last line without newline is ignored (an engine may have died in it). Anything else malformed is InvalidArgument
// with file, line and reason.
Trace ParseTrace(std::string_view text, std::string_view where);
Trace ReadTrace(const std::filesystem::path& out_dir, int64_t rank);

struct Certificate {
  struct Quantity {
    double max = 0;
    std::string where;
  };
  struct Liveness {
    std::string tensor;
    double nonzero_gradient_share = 0;
    double moving_weight_share = 0;
  };
  std::map<std::string, Quantity> quantities;
  std::vector<Liveness> liveness;
};

Certificate ParseCertificate(std::string_view json, std::string_view where);
std::string ToJson(const Certificate& certificate);

}  // namespace plumbline::contract
