// SPDX-License-Identifier: Apache-2.0
// The command line of an engine (docs/formats.md): `describe`, `run --case … --out …`, `run --batch FILE`.
// EngineMain serves it for engines written in C++; the harness reads descriptions and statuses with the parsers below.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace plumbline::contract {

struct EngineDescription {
  std::string name;
  std::string version;
  bool starts_itself = true;  // "self"; false: "per_rank"
  bool batch = false;
  std::vector<std::string> families;
  std::vector<std::string> dtypes;  // "fp64", "fp32", "bf16", "fp16"
  std::vector<std::string> optimizers;
  std::vector<int64_t> zero_stages;
  int64_t max_data_degree = 1;
  std::vector<std::string> features;

  bool Has(std::string_view feature) const;
};

EngineDescription ParseEngineDescription(std::string_view json, std::string_view where);
std::string ToJson(const EngineDescription& description);

struct CaseStatus {
  enum class Kind { kOk, kUnsupported, kEnvironment, kError };
  Kind kind = Kind::kOk;
  std::string message;
};

std::string_view Name(CaseStatus::Kind kind);  // "ok", "unsupported", "environment", "error"
CaseStatus ParseCaseStatus(std::string_view json, std::string_view where);
std::string ToJson(const CaseStatus& status);

struct BatchEntry {
  std::filesystem::path case_dir;
  std::filesystem::path out_dir;
};
std::vector<BatchEntry> ParseBatchList(std::string_view text, std::string_view where);
std::string ToJson(const std::vector<BatchEntry>& list);

// Runs one case; throws Error. An Error becomes the case's status; other exceptions become "error".
using RunCase = std::function<void(const std::filesystem::path& case_dir, const std::filesystem::path& out_dir)>;

// Rank 0 writes it, of an engine whose ranks are processes.
enum class StatusFile { kWritten, kOfAnotherRank };

// Returns the process's exit code. Writes status.json after each case (temporary file, then rename).
int EngineMain(int argc, const char* const* argv, const EngineDescription& description, const RunCase& run,
               StatusFile status_file = StatusFile::kWritten);

}  // namespace plumbline::contract
