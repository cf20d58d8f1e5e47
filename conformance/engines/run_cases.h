// SPDX-License-Identifier: Apache-2.0
// Runs a list of cases with one engine, each judged only by how it ended: the traces are read by somebody else.
// A case that crashes or hangs costs that case alone; the engine is started again for the rest of the list.
// Several calls may run at once in threads of one process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "conformance/contract/engine_protocol.h"
#include "conformance/engines/engine_program.h"

namespace plumbline::conformance {

struct CaseRun {
  std::filesystem::path case_dir;
  std::filesystem::path out_dir;  // made if absent; must be empty
  double timeout_s = 60;
  int64_t world = 1;  // copies of a per-rank engine; ignored for an engine that starts its ranks itself
};

struct CaseOutcome {
  enum class Kind {
    kOk,
    kUnsupported,  // the engine's own status, as the next two
    kEnvironment,
    kError,
    kCrashed,      // killed by a signal, or another exit code than 0, 3 and 4, and no status
    kTimedOut,     // no status in time; killed
    kProtocol,     // ended without a status, skipped the case, malformed status, exit code against the status
    kInterrupted,  // stop was requested before it was over
  };
  Kind kind = Kind::kOk;
  std::string message = {};  // one line of valid UTF-8; empty for most kOk. Names the rank if the engine has several
  double wall_s = 0;         // from the end of the previous case, or the start of the engine, to the end of this one
  // What the engine printed (of rank 0, or of the rank that is named); may be shared by cases.
  std::filesystem::path log = {};
};

// "ok", "unsupported", "environment", "error", "crashed", "timed_out", "protocol", "interrupted"
std::string_view Name(CaseOutcome::Kind kind);

// "crashed killed by SIGSEGV": how it ended, and the message if there is one.
std::string TextOf(const CaseOutcome& outcome);

struct RunLimits {
  double start_allowance_s = 30;              // added to the time-out of the first case after a start
  double term_grace_s = 0.5;                  // between SIGTERM and SIGKILL
  double peer_grace_s = 2;                    // what the other ranks get after one has died
  double exit_allowance_s = 10;               // between the last status of a start and the end of its processes
  int64_t max_log_bytes = int64_t{16} << 20;  // a log; what an engine prints beyond is read and dropped
};

// Calls on_done exactly once for each case, on the calling thread, in the order in which they end: the order of the
// list, or for per-rank batches of different worlds, world by world in the order of first appearance. While on_done
// runs, time that the engine uses counts, but nothing is killed before its status has been looked at once more. The
// outcome of the last case of a start is known when the engine has ended, so that a crash on the way out is not lost.
//
// Engines get the environment of this process, where RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are set
// for per-rank engines and removed for others; standard input is empty. Each rank leads a process group of its own,
// which is killed as a whole when the rank has ended, and receives SIGKILL if the calling thread ends. A daemon that
// left the group is killed with the end of its start, by a mark in its environment (start_mark.h). (One that replaced
// its environment, or outlived a killed harness, is beyond reach.)
//
// Lists and logs are left in a new folder under scratch_dir. Throws contract::Error before the first start if an
// out_dir is not empty (InvalidArgument) or a folder cannot be made (Environment), and at a start that fails, also for a
// reason of the program file (Environment: it has described itself before); cases that were not reported then remain
// unreported. What on_done throws passes through. No process is left behind in any case.
void RunCases(const EngineProgram& engine, const contract::EngineDescription& description,
              std::span<const CaseRun> cases, const std::filesystem::path& scratch_dir, std::stop_token stop,
              const std::function<void(size_t index, const CaseOutcome& outcome)>& on_done,
              const RunLimits& limits = RunLimits{});

}  // namespace plumbline::conformance
