// SPDX-License-Identifier: Apache-2.0
// Watches one start of an engine over a list of cases (of one world) and gives each case that ends its outcome.
// One case without --batch is a list of length one. Starting again for the rest is run_cases.cc's business.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>

#include "conformance/engines/case_status.h"
#include "conformance/engines/engine_start.h"
#include "conformance/engines/run_cases.h"

namespace plumbline::conformance {

class SupervisedStart {
 public:
  struct Task {
    const EngineProgram* engine = nullptr;
    bool batch = false;
    std::optional<int64_t> copies;      // see EngineStart
    std::span<const CaseRun> cases;     // all of the call
    std::span<const size_t> indexes;    // of this start, into cases; not empty
    std::filesystem::path file_prefix;  // of the batch list and the logs
    std::stop_token stop;
    RunLimits limits;
  };
  using OnDone = std::function<void(size_t index, const CaseOutcome& outcome)>;

  SupervisedStart(const Task& task, const OnDone& on_done);

  // Reports the outcomes of the first cases of `indexes` and returns of how many: at least one, unless stop was
  // requested. No process is left.
  size_t Supervise();

 private:
  const CaseRun& CaseAt(size_t position) const { return task_.cases[task_.indexes[position]]; }
  bool IsLast() const { return next_ + 1 == task_.indexes.size(); }

  void TakeStatuses();
  void Conclude(const StatusSighting& sighting);
  bool IsFinal(const StatusSighting& sighting);
  bool AreFilesClosed();
  bool ReportIfSkipped(size_t look_ahead);

  bool FailureGraceIsOver(double now);
  void JudgeFailure();
  void JudgeEnd();
  void JudgeTimeout(double now);
  void JudgeHeld();
  CaseOutcome HeldAgainstExits() const;
  std::optional<size_t> RankAgainst(CaseOutcome::Kind kind) const;
  CaseOutcome BlamedOnFailure() const;
  std::string QuietEnds() const;
  void BlameFailedPeer(CaseOutcome& outcome) const;

  double AllowedSeconds() const;
  void Report(CaseOutcome outcome);
  void ReportAndStop(CaseOutcome outcome);

  const Task task_;
  const OnDone& on_done_;
  EngineStart engine_;
  size_t next_ = 0;  // position of the case that is running
  bool over_ = false;
  double case_began_;
  std::optional<double> malformed_since_;
  std::optional<double> open_since_;  // the status is there, files of the case are not closed
  std::string open_files_;            // what is said about them, once they have been open for too long
  std::optional<double> failed_since_;
  std::optional<CaseOutcome> held_;  // of the last case, until the processes have ended
  double held_since_ = 0;
};

}  // namespace plumbline::conformance
