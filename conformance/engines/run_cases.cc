// SPDX-License-Identifier: Apache-2.0
// Groups cases into starts, and starts again for what a lost start has left over.
#include "conformance/engines/run_cases.h"

#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <set>
#include <system_error>
#include <vector>

#include "conformance/contract/error.h"
#include "conformance/engines/supervised_start.h"

namespace plumbline::conformance {
namespace {

namespace fs = std::filesystem;
using contract::ErrorCode;

// Cases that one start can serve.
struct Group {
  std::optional<int64_t> copies;
  std::vector<size_t> indexes;
};

std::vector<Group> MakeGroups(const contract::EngineDescription& description, std::span<const CaseRun> cases) {
  std::vector<Group> groups;
  for (size_t index = 0; index < cases.size(); ++index) {
    const auto copies = description.starts_itself ? std::nullopt : std::optional<int64_t>(cases[index].world);
    const auto same = [&](const Group& group) { return group.copies == copies; };
    auto group = description.batch ? std::find_if(groups.begin(), groups.end(), same) : groups.end();
    if (group == groups.end()) group = groups.insert(groups.end(), Group{copies, {}});
    group->indexes.push_back(index);
  }
  return groups;
}

void CheckMachine(const std::error_code& reason, const std::string& what, const fs::path& path) {
  if (reason) contract::Fail(ErrorCode::kEnvironment, what + " " + path.string() + ": " + reason.message());
}

// A status that lies there from another run would be taken for the engine's.
void PrepareOutDirs(std::span<const CaseRun> cases) {
  std::set<fs::path> seen;
  for (const CaseRun& run : cases) {
    const std::string out = "out_dir " + run.out_dir.string();
    if (!(run.timeout_s > 0)) contract::Fail(ErrorCode::kInvalidArgument, out + ": timeout_s must be above 0");
    if (run.world < 1) contract::Fail(ErrorCode::kInvalidArgument, out + ": world must be at least 1");
    std::error_code reason;
    fs::create_directories(run.out_dir, reason);
    CheckMachine(reason, "cannot make", run.out_dir);
    const bool empty = fs::is_empty(run.out_dir, reason);
    CheckMachine(reason, "cannot read", run.out_dir);
    if (!seen.insert(fs::canonical(run.out_dir)).second) {
      contract::Fail(ErrorCode::kInvalidArgument, out + " belongs to two cases");
    }
    if (!empty) contract::Fail(ErrorCode::kInvalidArgument, out + " is not empty");
  }
}

// Ranks may run ahead of rank 0, which writes the status; what they left belongs to the lost start.
void ClearOutDirs(std::span<const CaseRun> cases, std::span<const size_t> indexes) {
  for (size_t index : indexes) {
    std::error_code reason;
    std::vector<fs::path> entries;
    for (fs::directory_iterator it(cases[index].out_dir, reason), end; !reason && it != end; it.increment(reason)) {
      entries.push_back(it->path());
    }
    for (const fs::path& entry : entries) {
      if (!reason) fs::remove_all(entry, reason);
    }
    CheckMachine(reason, "cannot clear", cases[index].out_dir);
  }
}

fs::path MakeFolder(const fs::path& scratch_dir) {
  std::error_code reason;
  fs::create_directories(scratch_dir, reason);
  CheckMachine(reason, "cannot make", scratch_dir);
  std::string name = (scratch_dir / "engine-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) {
    CheckMachine(std::error_code(errno, std::generic_category()), "cannot make a folder in", scratch_dir);
  }
  return name;
}

std::string StartName(int num_starts) {
  char text[32];
  std::snprintf(text, sizeof text, "start-%04d", num_starts);
  return text;
}

}  // namespace

std::string_view Name(CaseOutcome::Kind kind) {
  constexpr std::string_view kNames[] = {"ok",      "unsupported", "environment", "error",
                                         "crashed", "timed_out",   "protocol",    "interrupted"};
  return kNames[static_cast<int>(kind)];
}

std::string TextOf(const CaseOutcome& outcome) {
  return std::string(Name(outcome.kind)) + (outcome.message.empty() ? "" : " " + outcome.message);
}

void RunCases(const EngineProgram& engine, const contract::EngineDescription& description,
              std::span<const CaseRun> cases, const fs::path& scratch_dir, std::stop_token stop,
              const std::function<void(size_t index, const CaseOutcome& outcome)>& on_done, const RunLimits& limits) {
  PrepareOutDirs(cases);
  if (cases.empty()) return;
  const fs::path folder = MakeFolder(scratch_dir);
  int num_starts = 0;
  for (const Group& group : MakeGroups(description, cases)) {
    std::span<const size_t> rest = group.indexes;
    while (!rest.empty() && !stop.stop_requested()) {
      if (rest.size() < group.indexes.size()) ClearOutDirs(cases, rest);
      const SupervisedStart::Task task{.engine = &engine,
                                       .batch = description.batch,
                                       .copies = group.copies,
                                       .cases = cases,
                                       .indexes = rest,
                                       .file_prefix = folder / StartName(num_starts++),
                                       .stop = stop,
                                       .limits = limits};
      const size_t num_reported = SupervisedStart(task, on_done).Supervise();
      contract::Check(num_reported > 0 || stop.stop_requested(), "a start of an engine settles at least one case");
      rest = rest.subspan(num_reported);
    }
    for (size_t index : rest) {
      on_done(
          index,
          {.kind = CaseOutcome::Kind::kInterrupted, .message = "stopped before it was over", .wall_s = 0, .log = {}});
    }
  }
}

}  // namespace plumbline::conformance
