// SPDX-License-Identifier: Apache-2.0
// The rules by which a case gets its outcome. Statuses come in the order of the list; whatever ends without one is the
// fault of the first case that has none.
#include "conformance/engines/supervised_start.h"

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "conformance/contract/engine_protocol.h"
#include "conformance/contract/error.h"
#include "conformance/contract/file_io.h"
#include "conformance/engines/monotonic.h"
#include "conformance/engines/one_line.h"
#include "conformance/engines/open_files.h"

namespace plumbline::conformance {
namespace {

using Kind = CaseOutcome::Kind;
using contract::CaseStatus;

// A look at one or two files takes microseconds and delays nobody: the engine does not wait for us between cases.
constexpr double kTickSeconds = 0.005;

// An engine that does not rename its status into place may be in the middle of writing it: one small write, which half
// a second outlasts on a busy machine.
constexpr double kStatusSettleSeconds = 0.5;

// An engine that lets threads of its own write traces and dumps may state its status before the last of them has
// closed its file. What is read later would be the rest of a file; what is open for longer is not being closed.
constexpr double kFilesSettleSeconds = 0.5;

std::string Seconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%g s", seconds);
  return text;
}

Kind KindOf(CaseStatus::Kind kind) {
  switch (kind) {
    case CaseStatus::Kind::kOk:
      return Kind::kOk;
    case CaseStatus::Kind::kUnsupported:
      return Kind::kUnsupported;
    case CaseStatus::Kind::kEnvironment:
      return Kind::kEnvironment;
    case CaseStatus::Kind::kError:
      return Kind::kError;
  }
  return Kind::kError;
}

// Exit code of `run --case` that belongs to a status that is no error.
int ExpectedExitCode(Kind kind) { return kind == Kind::kUnsupported ? 3 : kind == Kind::kEnvironment ? 4 : 0; }

bool IsCrash(const ChildEnd& end) { return end.signaled || (end.code != 0 && end.code != 3 && end.code != 4); }

std::vector<std::string> Arguments(const SupervisedStart::Task& task) {
  const auto entry = [&](size_t index) {
    const CaseRun& run = task.cases[index];
    return contract::BatchEntry{std::filesystem::absolute(run.case_dir), std::filesystem::absolute(run.out_dir)};
  };
  if (!task.batch) {
    const contract::BatchEntry only = entry(task.indexes.front());
    return {"run", "--case", only.case_dir.string(), "--out", only.out_dir.string()};
  }
  std::vector<contract::BatchEntry> list;
  for (size_t index : task.indexes) list.push_back(entry(index));
  const std::filesystem::path path = task.file_prefix.string() + ".list";
  contract::WriteFile(path, contract::ToJson(list));
  return {"run", "--batch", std::filesystem::absolute(path).string()};
}

}  // namespace

SupervisedStart::SupervisedStart(const Task& task, const OnDone& on_done)
    : task_(task),
      on_done_(on_done),
      engine_(*task.engine, Arguments(task), task.copies, task.file_prefix, task.limits.max_log_bytes),
      case_began_(MonotonicSeconds()) {}

size_t SupervisedStart::Supervise() {
  while (!over_) {
    engine_.Wait(kTickSeconds);
    if (task_.stop.stop_requested()) {
      engine_.End(task_.limits.term_grace_s);
      break;
    }
    TakeStatuses();  // after Wait has reaped: what an ended process wrote is seen before its end is judged
    const double now = MonotonicSeconds();
    if (over_) break;
    if (engine_.all_ended()) {
      JudgeEnd();
    } else if (held_) {
      if (now - held_since_ > task_.limits.exit_allowance_s) JudgeHeld();
    } else if (open_since_) {
      continue;  // the status of this case is there: nothing that happens now is its end
    } else if (FailureGraceIsOver(now)) {
      JudgeFailure();
    } else if (now - case_began_ > AllowedSeconds()) {
      JudgeTimeout(now);
    }
  }
  return next_;
}

double SupervisedStart::AllowedSeconds() const {
  return CaseAt(next_).timeout_s + (next_ == 0 ? task_.limits.start_allowance_s : 0);
}

// --- statuses ---

void SupervisedStart::TakeStatuses() {
  while (!over_ && !held_) {
    const std::optional<StatusSighting> sighting = LookForStatus(CaseAt(next_).out_dir);
    if (!sighting) {
      if (ReportIfSkipped(1)) continue;
      return;
    }
    if (!IsFinal(*sighting) || !AreFilesClosed()) return;
    Conclude(*sighting);
  }
}

bool SupervisedStart::IsFinal(const StatusSighting& sighting) {
  if (sighting.status) return true;
  if (engine_.all_ended() || (!IsLast() && HasStatus(CaseAt(next_ + 1).out_dir))) return true;
  const double now = MonotonicSeconds();
  if (!malformed_since_) malformed_since_ = now;
  return now - *malformed_since_ > kStatusSettleSeconds;
}

// False while the engine may still be about to close what it has written for the case. What a process that has ended
// had open is not known.
bool SupervisedStart::AreFilesClosed() {
  std::vector<std::string> open;
  for (const EngineStart::Rank& rank : engine_.ranks()) {
    if (rank.child.ended()) continue;
    for (std::string& name : OpenFilesIn(CaseAt(next_).out_dir, rank.child.pid())) {
      if (!name.starts_with("status.json")) open.push_back(std::move(name));
    }
  }
  if (open.empty() || engine_.first_failed()) return true;
  const double now = MonotonicSeconds();
  if (!open_since_) open_since_ = now;
  if (now - *open_since_ <= kFilesSettleSeconds) return false;
  open_files_ = "the case is over, but " + open.front() +
                (open.size() > 1 ? " and " + std::to_string(open.size() - 1) + " more are" : " is") + " still open " +
                Seconds(kFilesSettleSeconds) + " later (a start of several cases shows it)";
  return true;
}

// True if one of the next `look_ahead` cases has a status although the current one has none.
bool SupervisedStart::ReportIfSkipped(size_t look_ahead) {
  const size_t end = std::min(task_.indexes.size(), next_ + 1 + look_ahead);
  for (size_t later = next_ + 1; later < end; ++later) {
    if (!HasStatus(CaseAt(later).out_dir)) continue;
    // Both may have been written between the two looks.
    if (HasStatus(CaseAt(next_).out_dir)) return true;
    const std::string message = "skipped: no status.json, but case " + std::to_string(later + 1) +
                                " of the list has one and this is case " + std::to_string(next_ + 1);
    Report({.kind = Kind::kProtocol, .message = message, .wall_s = 0, .log = {}});
    return true;
  }
  return false;
}

void SupervisedStart::Conclude(const StatusSighting& sighting) {
  const double now = MonotonicSeconds();
  const double ended = now - std::min(sighting.age_s, now - case_began_);
  CaseOutcome outcome{.kind = Kind::kProtocol, .message = sighting.problem, .wall_s = ended - case_began_, .log = {}};
  if (sighting.status) {
    outcome.kind = KindOf(sighting.status->kind);
    outcome.message = sighting.status->message;
  }
  if (outcome.kind == Kind::kOk && !open_files_.empty()) {
    outcome.kind = Kind::kProtocol;
    outcome.message = std::move(open_files_);
  }
  open_files_.clear();
  case_began_ = ended;
  malformed_since_.reset();
  open_since_.reset();
  if (IsLast()) {
    held_ = std::move(outcome);
    held_since_ = now;
    return;
  }
  // Where rank 0 reports an error because a peer has died, the peer is to blame and the start is lost.
  engine_.Reap();
  const std::optional<size_t> failed = engine_.first_failed();
  if (outcome.kind == Kind::kError && failed && *failed != 0) {
    BlameFailedPeer(outcome);
    ReportAndStop(std::move(outcome));
  } else {
    Report(std::move(outcome));
  }
}

// --- ends ---

bool SupervisedStart::FailureGraceIsOver(double now) {
  if (!engine_.first_failed()) return false;
  if (!failed_since_) failed_since_ = now;
  // A rank that declines in an orderly way says nothing about how far the others are in doing so.
  const bool crash = IsCrash(engine_.ranks()[*engine_.first_failed()].child.end());
  return now - *failed_since_ > (crash ? task_.limits.peer_grace_s : task_.limits.exit_allowance_s);
}

CaseOutcome SupervisedStart::BlamedOnFailure() const {
  const size_t failed = *engine_.first_failed();
  CaseOutcome outcome;
  outcome.kind = IsCrash(engine_.ranks()[failed].child.end()) ? Kind::kCrashed : Kind::kProtocol;
  outcome.message = engine_.EndOf(failed);
  if (outcome.kind == Kind::kProtocol) outcome.message += "; no status.json";
  outcome.message += QuietEnds();
  outcome.wall_s = MonotonicSeconds() - case_began_;
  outcome.log = engine_.ranks()[failed].log.path();
  return outcome;
}

// Of a case without a status: a rank that has left it as if all were well, for which the others may wait.
std::string SupervisedStart::QuietEnds() const {
  for (size_t rank = 0; rank < engine_.ranks().size(); ++rank) {
    const ChildProcess& child = engine_.ranks()[rank].child;
    if (child.ended() && child.end().clean()) return "; rank " + std::to_string(rank) + " ended with exit code 0";
  }
  return "";
}

void SupervisedStart::JudgeFailure() { ReportAndStop(BlamedOnFailure()); }

void SupervisedStart::JudgeEnd() {
  if (held_) return JudgeHeld();
  if (ReportIfSkipped(task_.indexes.size())) return;  // and come back for the others
  if (engine_.first_failed()) return ReportAndStop(BlamedOnFailure());
  CaseOutcome outcome{.kind = Kind::kProtocol, .message = "", .wall_s = MonotonicSeconds() - case_began_, .log = {}};
  outcome.message = "the engine ended with exit code 0 without status.json";
  if (task_.batch) {
    outcome.message += ", at entry " + std::to_string(next_ + 1) + " of " + std::to_string(task_.indexes.size()) +
                       " of its --batch list";
  }
  const std::string line = engine_.ranks().front().log.LastErrorLine();
  if (!line.empty()) outcome.message += "; last line of its errors: " + line;
  ReportAndStop(std::move(outcome));
}

void SupervisedStart::JudgeTimeout(double now) {
  if (ReportIfSkipped(task_.indexes.size())) return;
  if (engine_.first_failed()) return JudgeFailure();
  const double timeout_s = CaseAt(next_).timeout_s;
  CaseOutcome outcome{.kind = Kind::kTimedOut, .message = "", .wall_s = now - case_began_, .log = {}};
  outcome.message = "no status after " + Seconds(AllowedSeconds()) + " (time-out of the case " + Seconds(timeout_s);
  if (next_ == 0) outcome.message += ", and " + Seconds(task_.limits.start_allowance_s) + " to start the engine";
  outcome.message += ")" + QuietEnds();
  const std::string line = engine_.ranks().front().log.LastErrorLine();
  if (!line.empty()) outcome.message += "; last line of its errors: " + line;
  ReportAndStop(std::move(outcome));
}

void SupervisedStart::JudgeHeld() {
  CaseOutcome outcome = HeldAgainstExits();
  held_.reset();
  ReportAndStop(std::move(outcome));
}

// The status of the last case, unless the way in which the processes ended says otherwise.
CaseOutcome SupervisedStart::HeldAgainstExits() const {
  CaseOutcome outcome = *held_;
  const std::string status(Name(outcome.kind));
  if (outcome.kind == Kind::kError) {
    BlameFailedPeer(outcome);
    return outcome;
  }
  if (outcome.kind == Kind::kProtocol) return outcome;
  if (const std::optional<size_t> culprit = RankAgainst(outcome.kind)) {
    outcome.kind = IsCrash(engine_.ranks()[*culprit].child.end()) ? Kind::kCrashed : Kind::kProtocol;
    outcome.message = "status \"" + status + "\", but " + engine_.EndOf(*culprit);
    outcome.log = engine_.ranks()[*culprit].log.path();
  } else if (!engine_.all_ended()) {
    outcome.kind = Kind::kTimedOut;
    outcome.message = "the last status, \"" + status + "\", was written, but the engine had not ended " +
                      Seconds(task_.limits.exit_allowance_s) + " later";
  }
  return outcome;
}

// A rank whose end does not belong to a status that is no error; the first that failed if it is one of them.
std::optional<size_t> SupervisedStart::RankAgainst(Kind kind) const {
  const int expected = task_.batch ? 0 : ExpectedExitCode(kind);
  const auto against = [&](size_t rank) {
    const ChildProcess& child = engine_.ranks()[rank].child;
    if (!child.ended() || child.end().clean()) return child.ended() && rank == 0 && expected != 0;
    return child.end().signaled || child.end().code != expected;
  };
  if (engine_.first_failed() && against(*engine_.first_failed())) return engine_.first_failed();
  for (size_t rank = 0; rank < engine_.ranks().size(); ++rank) {
    if (against(rank)) return rank;
  }
  return std::nullopt;
}

// `outcome` is an error that rank 0 has stated.
void SupervisedStart::BlameFailedPeer(CaseOutcome& outcome) const {
  if (!engine_.first_failed()) return;
  const size_t failed = *engine_.first_failed();
  const ChildEnd& end = engine_.ranks()[failed].child.end();
  if (failed == 0 && !end.signaled) return;  // the exit code that belongs to an error
  outcome.kind = IsCrash(end) ? Kind::kCrashed : outcome.kind;
  outcome.message = OneLine(engine_.EndOf(failed) + "; status \"error\": " + outcome.message, 800);
  outcome.log = engine_.ranks()[failed].log.path();
}

// --- reports ---

void SupervisedStart::Report(CaseOutcome outcome) {
  if (outcome.log.empty()) outcome.log = engine_.ranks().front().log.path();
  on_done_(task_.indexes[next_++], outcome);
}

void SupervisedStart::ReportAndStop(CaseOutcome outcome) {
  engine_.End(task_.limits.term_grace_s);
  over_ = true;
  Report(std::move(outcome));
}

}  // namespace plumbline::conformance
