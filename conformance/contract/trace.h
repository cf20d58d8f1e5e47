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
#include "conformance/contract/loss_scale.h"
#include "conformance/contract/norm_history.h"
#include "conformance/contract/run_config.h"

namespace plumbline::contract {

enum class TensorKind { kGradient, kMoment, kSecondMoment, kMaster, kWeight };
inline constexpr TensorKind kTensorKinds[] = {TensorKind::kGradient, TensorKind::kMoment, TensorKind::kSecondMoment,
                                              TensorKind::kMaster, TensorKind::kWeight};
inline constexpr int kNumTensorKinds = 5;
std::string_view Name(TensorKind kind);  // "gradient", "moment", "second_moment", "master", "weight"

// [begin, end) of a tensor, row-major indices in the whole tensor. Sums are written for gradients of family exact only.
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

// What a step of a real family reports besides.
struct RealStep {
  std::vector<double> lr;    // of the default group, then of param_groups
  double gradient_norm = 0;  // before clipping; NaN or infinite where the gradient is (written as null)
  bool skipped = false;
  std::optional<NormHistory> norm_history = {};  // after the step; exactly with HasNormHistory
  std::optional<LossScaler> loss_scaler = {};    // after the step; exactly with HasDynamicLossScale
};

struct StepRecord {
  int64_t step = 0;
  double loss = 0;
  int64_t tokens = 0;
  std::vector<SliceDigest> slices[kNumTensorKinds];      // indexed by TensorKind
  std::optional<RealStep> real;                          // the real families
  std::optional<std::map<std::string, CommCount>> comm;  // kinds that were called
  uint64_t comm_sequence = 0;
  std::map<std::string, int64_t> memory_peak_bytes;  // by category; empty where it is not kept
  std::optional<int64_t> comm_wait_us;               // time blocked in waiting for communication

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
  std::vector<StepRecord> steps;  // consecutive
  bool complete = false;          // the end record was read and counts the steps
};

// A last line without newline is ignored (an engine may have died in it). Anything else malformed is InvalidArgument
// with file, line and reason.
Trace ParseTrace(std::string_view text, std::string_view where);
Trace ReadTrace(const std::filesystem::path& out_dir, int64_t rank);

// Where a rank dumps its tensors after a step, below OUT_DIR: "rank0/tensors-000049.safetensors".
std::string DumpName(int64_t rank, int64_t step);

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
