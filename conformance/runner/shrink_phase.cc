// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/shrink_phase.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include "conformance/cases/shrink.h"
#include "conformance/contract/error.h"
#include "conformance/runner/failure_reason.h"
#include "conformance/runner/lone_case_file.h"

namespace plumbline::conformance {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// A stop that is requested when time is up or the outer stop is: what runs then is ended, not waited for.
class Deadline {
 public:
  Deadline(double seconds, const std::stop_token& outer)
      : end_(Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))),
        forward_(outer, [this] { source_.request_stop(); }),
        watch_([this](std::stop_token over) {
          std::unique_lock lock(mutex_);
          never_.wait_until(lock, over, end_, [] { return false; });
          if (!over.stop_requested()) source_.request_stop();
        }) {}

  std::stop_token token() const { return source_.get_token(); }
  double left_s() const { return std::max(std::chrono::duration<double>(end_ - Clock::now()).count(), 0.0); }

 private:
  Clock::time_point end_;
  std::stop_source source_;
  std::mutex mutex_;
  std::condition_variable_any never_;
  std::stop_callback<std::function<void()>> forward_;
  std::jthread watch_;  // last: it uses the others
};

// A subject whose reason no earlier one has.
struct Distinct {
  const ShrinkSubject* subject = nullptr;
  FailureReason reason;
};

std::vector<Distinct> DistinctReasons(const std::vector<ShrinkSubject>& subjects) {
  std::vector<Distinct> distinct;
  std::set<FailureReason> seen;
  for (const ShrinkSubject& subject : subjects) {
    const std::optional<FailureReason> reason = ReasonOf(subject.judgement);
    if (!reason || !seen.insert(*reason).second) continue;
    if (distinct.size() < kMaxShrunk) distinct.push_back({&subject, *reason});
  }
  return distinct;
}

class Phase {
 public:
  Phase(const ShrinkSetting& setting, std::stop_token stop)
      : setting_(setting),
        stop_(std::move(stop)),
        judge_(setting.engines, setting.source, setting.work_dir / "shrink", setting.jobs) {}

  void Run(const Distinct& distinct, double budget_s) {
    const contract::Case& start = distinct.subject->entry->spec;
    const auto began = Clock::now();
    judge_.Know(*distinct.subject->entry, setting_.truths);
    reports::ShrunkRecord& record = distinct.subject->record->emplace();
    const ShrinkResult result = Search(distinct, budget_s, record);
    record.reduced = Reductions(start, result.smallest);
    record.tried = result.tried;
    record.finished = result.finished;
    if (stop_.stop_requested() && record.note.empty()) record.note = "interrupted";
    if (!record.reduced.empty() && record.note.empty()) Confirm(distinct, result.smallest, record);
    record.seconds = SecondsSince(began);
  }

 private:
  ShrinkResult Search(const Distinct& distinct, double budget_s, reports::ShrunkRecord& record) {
    const Deadline deadline(budget_s, stop_);
    const std::string& id = distinct.subject->entry->id;
    int64_t tried = 0;
    bool cut_off = false;  // the last question got no answer: that nothing smaller fails is not known
    const auto still_fails = [&](const contract::Case& candidate) {
      setting_.progress(id, ++tried, deadline.left_s());
      try {
        const std::optional<Judgement> judgement = judge_.Judge(candidate, deadline.token());
        cut_off |= !judgement && deadline.token().stop_requested();
        return judgement && FailsFor(distinct.reason, candidate.model, *judgement);
      } catch (const contract::Error& error) {
        record.note = error.what();
        return false;
      }
    };
    ShrinkResult result = Shrink(distinct.subject->entry->spec, still_fails,
                                 [&] { return deadline.token().stop_requested() || !record.note.empty(); });
    result.finished &= !cut_off && record.note.empty();
    return result;
  }

  // What is told was run: from the file, by the code that the line runs.
  void Confirm(const Distinct& distinct, contract::Case smallest, reports::ShrunkRecord& record) const {
    smallest.id += "/shrunk";
    const std::filesystem::path file =
        setting_.failures_dir / FailureFolder(*distinct.subject->entry, distinct.subject->entry->spec) / "shrunk.json";
    try {
      WriteLoneCase(file, smallest);
      const reports::CaseRecord seen = setting_.run_file(file);
      record.message = seen.message;
      if (stop_.stop_requested()) {
        record.note = "interrupted";
      } else if (seen.verdict != distinct.subject->judgement.verdict) {
        record.note = "from a file it is " + std::string(reports::Name(seen.verdict));
      }
      if (!record.note.empty()) return;
      record.reproduce = setting_.line_of(file);
    } catch (const contract::Error& error) {
      record.note = error.what();
    }
  }

  const ShrinkSetting& setting_;
  std::stop_token stop_;
  LoneJudge judge_;
};

}  // namespace

void ShrinkFailures(const ShrinkSetting& setting, const std::vector<ShrinkSubject>& subjects, std::stop_token stop) {
  const std::vector<Distinct> distinct = DistinctReasons(subjects);
  if (distinct.empty()) return;
  Phase phase(setting, stop);
  double left_s = setting.budget_s;
  for (size_t i = 0; i < distinct.size() && !stop.stop_requested(); ++i) {
    const auto began = Clock::now();
    // Equal shares of what is left: what one does not need is the others'.
    phase.Run(distinct[i], left_s / static_cast<double>(distinct.size() - i));
    left_s = std::max(left_s - SecondsSince(began), 0.0);
  }
}

}  // namespace plumbline::conformance
