// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/engine_protocol.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <optional>

#include "conformance/contract/error.h"
#include "conformance/contract/file_io.h"
#include "conformance/contract/strict_json.h"

namespace plumbline::contract {
namespace {

// A line of a table has room for it.
constexpr size_t kMaxNameBytes = 100;

constexpr const char* kUsage =
    "usage: ENGINE describe\n"
    "       ENGINE run --case CASE_DIR --out OUT_DIR\n"
    "       ENGINE run --batch FILE\n";

std::string Array(const std::vector<std::string>& words) {
  std::string json = "[";
  for (size_t i = 0; i < words.size(); ++i) json += (i ? ", " : "") + JsonQuote(words[i]);
  return json + "]";
}

std::vector<std::string> Strings(const JsonValue& array) {
  std::vector<std::string> words;
  for (size_t i = 0; i < array.Size(); ++i) words.push_back(array[i].String());
  return words;
}

CaseStatus StatusOf(const Error& error) {
  switch (error.code()) {
    case ErrorCode::kUnsupported:
      return {CaseStatus::Kind::kUnsupported, error.what()};
    case ErrorCode::kEnvironment:
      return {CaseStatus::Kind::kEnvironment, error.what()};
    default:
      return {CaseStatus::Kind::kError, error.what()};
  }
}

CaseStatus StatusOfRunning(const RunCase& run, const BatchEntry& entry) {
  try {
    run(entry.case_dir, entry.out_dir);
    return {};
  } catch (const Error& error) {
    return StatusOf(error);
  } catch (const std::exception& error) {
    return {CaseStatus::Kind::kError, error.what()};
  } catch (...) {
    return {CaseStatus::Kind::kError, "threw something that is not a std::exception"};
  }
}

// Throws Environment where the status cannot be written.
CaseStatus RunOne(const RunCase& run, const BatchEntry& entry, StatusFile status_file) {
  const CaseStatus status = StatusOfRunning(run, entry);
  if (status.kind != CaseStatus::Kind::kOk) {
    std::fprintf(stderr, "%s: %s\n", std::string(Name(status.kind)).c_str(), status.message.c_str());
  }
  if (status_file == StatusFile::kWritten) WriteFile(entry.out_dir / "status.json", ToJson(status));
  return status;
}

int ExitCodeOf(CaseStatus::Kind kind) {
  switch (kind) {
    case CaseStatus::Kind::kOk:
      return static_cast<int>(ExitCode::kOk);
    case CaseStatus::Kind::kUnsupported:
      return static_cast<int>(ExitCode::kUnsupported);
    case CaseStatus::Kind::kEnvironment:
      return static_cast<int>(ExitCode::kEnvironment);
    case CaseStatus::Kind::kError:
      return static_cast<int>(ExitCode::kInternal);
  }
  return static_cast<int>(ExitCode::kInternal);
}

// The values of --case, --out and --batch; each at most once, nothing else.
struct RunArguments {
  std::optional<std::string> case_dir, out_dir, batch;
};

std::optional<RunArguments> ParseRunArguments(int argc, const char* const* argv) {
  RunArguments arguments;
  for (int i = 2; i < argc; i += 2) {
    const std::string_view option = argv[i];
    std::optional<std::string>* slot = option == "--case"    ? &arguments.case_dir
                                       : option == "--out"   ? &arguments.out_dir
                                       : option == "--batch" ? &arguments.batch
                                                             : nullptr;
    if (slot == nullptr || *slot || i + 1 >= argc) return std::nullopt;
    *slot = argv[i + 1];
  }
  const bool one = arguments.case_dir && arguments.out_dir && !arguments.batch;
  const bool many = arguments.batch && !arguments.case_dir && !arguments.out_dir;
  if (!one && !many) return std::nullopt;
  return arguments;
}

// Every case is run; the exit code is 0 if each has a status, whatever it says.
int RunBatch(const std::string& list, const RunCase& run, StatusFile status_file) {
  auto exit_code = ExitCode::kOk;
  for (const BatchEntry& entry : ParseBatchList(ReadFile(list), list)) {
    try {
      RunOne(run, entry, status_file);
    } catch (const Error& error) {
      std::fprintf(stderr, "%s\n", error.what());
      exit_code = contract::ExitCodeOf(error.code());
    }
  }
  return static_cast<int>(exit_code);
}

int Run(const RunArguments& arguments, const RunCase& run, StatusFile status_file) {
  if (arguments.batch) return RunBatch(*arguments.batch, run, status_file);
  return ExitCodeOf(RunOne(run, {*arguments.case_dir, *arguments.out_dir}, status_file).kind);
}

}  // namespace

bool EngineDescription::Has(std::string_view feature) const {
  return std::find(features.begin(), features.end(), feature) != features.end();
}

EngineDescription ParseEngineDescription(std::string_view json, std::string_view where) {
  const JsonValue root = JsonValue::Parse(json, where);
  root.AllowOnly({"protocol", "name", "version", "start", "batch", "families", "dtypes", "optimizers", "zero_stages",
                  "max_data_degree", "features"});
  root.At("protocol").Int(1, 1);
  EngineDescription description;
  description.name = root.At("name").Name(kMaxNameBytes);
  description.version = root.At("version").Name(kMaxNameBytes);
  description.starts_itself = root.At("start").OneOf({"self", "per_rank"}) == 0;
  description.batch = root.At("batch").Bool();
  description.families = Strings(root.At("families"));
  description.dtypes = Strings(root.At("dtypes"));
  description.optimizers = Strings(root.At("optimizers"));
  const JsonValue stages = root.At("zero_stages");
  for (size_t i = 0; i < stages.Size(); ++i) description.zero_stages.push_back(stages[i].Int(0, 3));
  description.max_data_degree = root.At("max_data_degree").Int(1, int64_t{1} << 20);
  description.features = Strings(root.At("features"));
  return description;
}

std::string ToJson(const EngineDescription& description) {
  std::string stages;
  for (int64_t stage : description.zero_stages) stages += (stages.empty() ? "" : ", ") + std::to_string(stage);
  return "{\"protocol\": 1, \"name\": " + JsonQuote(description.name) +
         ", \"version\": " + JsonQuote(description.version) +
         ", \"start\": " + (description.starts_itself ? "\"self\"" : "\"per_rank\"") +
         ", \"batch\": " + (description.batch ? "true" : "false") + ",\n \"families\": " + Array(description.families) +
         ", \"dtypes\": " + Array(description.dtypes) + ", \"optimizers\": " + Array(description.optimizers) +
         ",\n \"zero_stages\": [" + stages + "], \"max_data_degree\": " + std::to_string(description.max_data_degree) +
         ", \"features\": " + Array(description.features) + "}\n";
}

std::string_view Name(CaseStatus::Kind kind) {
  constexpr std::string_view kNames[] = {"ok", "unsupported", "environment", "error"};
  return kNames[static_cast<int>(kind)];
}

CaseStatus ParseCaseStatus(std::string_view json, std::string_view where) {
  const JsonValue root = JsonValue::Parse(json, where);
  root.AllowOnly({"status", "message"});
  const size_t kind = root.At("status").OneOf({"ok", "unsupported", "environment", "error"});
  return {static_cast<CaseStatus::Kind>(kind), root.At("message").String()};
}

std::string ToJson(const CaseStatus& status) {
  return "{\"status\": " + JsonQuote(Name(status.kind)) + ", \"message\": " + JsonQuote(status.message) + "}\n";
}

std::vector<BatchEntry> ParseBatchList(std::string_view text, std::string_view where) {
  std::vector<BatchEntry> list;
  int64_t line_number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    ++line_number;
    const JsonValue root =
        JsonValue::Parse(text.substr(0, end), std::string(where) + ":" + std::to_string(line_number));
    root.AllowOnly({"case", "out"});
    list.push_back({root.At("case").String(), root.At("out").String()});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return list;
}

std::string ToJson(const std::vector<BatchEntry>& list) {
  std::string text;
  for (const BatchEntry& entry : list) {
    text +=
        "{\"case\": " + JsonQuote(entry.case_dir.string()) + ", \"out\": " + JsonQuote(entry.out_dir.string()) + "}\n";
  }
  return text;
}

int EngineMain(int argc, const char* const* argv, const EngineDescription& description, const RunCase& run,
               StatusFile status_file) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error of the write, with a status
  try {
    const std::string_view command = argc > 1 ? argv[1] : "";
    if (command == "describe" && argc == 2) {
      std::fputs(ToJson(description).c_str(), stdout);
      return std::fflush(stdout) == 0 ? static_cast<int>(ExitCode::kOk) : static_cast<int>(ExitCode::kEnvironment);
    }
    if (command == "--help" || command == "-h") {
      std::fputs(kUsage, stdout);
      return static_cast<int>(ExitCode::kOk);
    }
    const std::optional<RunArguments> arguments = command == "run" ? ParseRunArguments(argc, argv) : std::nullopt;
    if (!arguments) {
      std::fputs(kUsage, stderr);
      return static_cast<int>(ExitCode::kUsage);
    }
    return Run(*arguments, run, status_file);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(contract::ExitCodeOf(error.code()));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(ExitCode::kInternal);
  }
}

}  // namespace plumbline::contract
