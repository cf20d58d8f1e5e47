// SPDX-License-Identifier: Apache-2.0
// Names, totals and the rule of exit codes. JSON is record_json.cc.
#include "reports/record/record.h"

#include <algorithm>

namespace plumbline::reports {

std::string_view Name(Verdict verdict) {
  constexpr std::string_view kNames[] = {"PASS", "FAIL", "ERROR", "UNSUPPORTED", "NOT_RUN", "VACUOUS"};
  return kNames[static_cast<int>(verdict)];
}

std::string_view Name(CheckOutcome outcome) {
  constexpr std::string_view kNames[] = {"pass", "fail", "vacuous", "not_applicable"};
  return kNames[static_cast<int>(outcome)];
}

int64_t& VerdictTotals::of(Verdict verdict) {
  int64_t* const counts[] = {&pass, &fail, &error, &unsupported, &not_run, &vacuous};
  return *counts[static_cast<int>(verdict)];
}

int64_t VerdictTotals::of(Verdict verdict) const { return const_cast<VerdictTotals*>(this)->of(verdict); }

VerdictTotals Totals(const Record& record) {
  VerdictTotals totals;
  for (const CaseRecord& entry : record.cases) ++totals.of(entry.verdict);
  return totals;
}

void CheckTotals(const Record& record) {
  const VerdictTotals counted = Totals(record);
  for (Verdict verdict : kVerdicts) {
    if (record.totals.of(verdict) == counted.of(verdict)) continue;
    throw RecordError("totals: " + std::to_string(record.totals.of(verdict)) + " " + std::string(Name(verdict)) +
                      " stated, but " + std::to_string(counted.of(verdict)) + " cases have that verdict");
  }
  if (counted.sum() != record.listed) {
    throw RecordError("totals: " + std::to_string(record.listed) + " cases were listed, but " +
                      std::to_string(counted.sum()) + " have a verdict");
  }
}

void CheckVerdicts(const Record& record) {
  for (const CaseRecord& entry : record.cases) {
    if (entry.verdict != Verdict::kPass) continue;
    const bool compared = std::ranges::any_of(entry.checks, [](const CheckRecord& check) {
      return check.outcome == CheckOutcome::kPass && check.compared > 0;
    });
    if (!compared) {
      throw RecordError("case " + entry.id + " of engine " + entry.engine +
                        ": verdict is PASS, but no check has compared anything");
    }
    for (const CheckRecord& check : entry.checks) {
      if (check.outcome == CheckOutcome::kPass || check.outcome == CheckOutcome::kNotApplicable) continue;
      throw RecordError("case " + entry.id + " of engine " + entry.engine + ": verdict is PASS, but its check " +
                        check.name + " is " + std::string(Name(check.outcome)));
    }
  }
}

namespace {

bool IsAcceptable(const CaseRecord& entry, bool require) {
  switch (entry.verdict) {
    case Verdict::kPass:
      return true;
    case Verdict::kUnsupported:
      return entry.expected_unsupported;
    case Verdict::kNotRun:
      return !require;
    case Verdict::kFail:
    case Verdict::kError:
    case Verdict::kVacuous:
      return false;
  }
  return false;
}

}  // namespace

int ExitCodeFor(const Record& record, bool require) {
  const VerdictTotals counted = Totals(record);
  const bool complete = !record.interrupted && record.missing_shards.empty() && counted == record.totals &&
                        counted.sum() == record.listed;
  const bool accepted = std::all_of(record.cases.begin(), record.cases.end(),
                                    [&](const CaseRecord& entry) { return IsAcceptable(entry, require); });
  const bool all_caught = std::all_of(record.defects.begin(), record.defects.end(),
                                      [](const DefectRecord& defect) { return defect.caught; });
  return complete && counted.pass >= 1 && accepted && all_caught ? 0 : 1;
}

void Finish(Record& record, bool require) {
  record.totals = Totals(record);
  record.exit_code = ExitCodeFor(record, require);
}

}  // namespace plumbline::reports
