// SPDX-License-Identifier: Apache-2.0
#include "cli/verify_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "cli/diagnosis_totals.h"
#include "cli/sensitivity_text.h"
#include "conformance/engines/one_line.h"
#include "reports/record/defect_state.h"
#include "reports/record/divergence_text.h"

namespace plumbline::cli {
namespace {

using reports::CaseRecord;
using reports::CheckOutcome;
using reports::Record;
using reports::Verdict;

struct Row {
  reports::VerdictTotals totals;
  int64_t min_ranks = 0;
  int64_t max_ranks = 0;
  int64_t steps = 0;
  int64_t compared = 0;  // by the checks of values
};

std::string Axis(const CaseRecord& entry, const char* name) {
  const auto found = entry.axes.find(name);
  return found == entry.axes.end() ? "" : found->second;
}

bool IsOfValues(const std::string& check) {
  constexpr std::string_view kNames[] = {"exact", "gradient", "bias", "update", "relation", "metamorphic"};
  return std::find(std::begin(kNames), std::end(kNames), check) != std::end(kNames);
}

std::map<std::pair<std::string, std::string>, Row> Rows(const Record& record) {
  std::map<std::pair<std::string, std::string>, Row> rows;
  for (const CaseRecord& entry : record.cases) {
    Row& row = rows[{entry.engine, Axis(entry, "problem")}];
    ++row.totals.of(entry.verdict);
    row.min_ranks = row.min_ranks == 0 ? entry.ranks : std::min(row.min_ranks, entry.ranks);
    row.max_ranks = std::max(row.max_ranks, entry.ranks);
    row.steps = std::max(row.steps, entry.steps);
    for (const reports::CheckRecord& check : entry.checks) {
      if (IsOfValues(check.name)) row.compared += check.compared;
    }
  }
  return rows;
}

std::string Counted(int64_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

// "2 FAIL, 18 UNSUPPORTED"
std::string OtherVerdicts(const reports::VerdictTotals& totals) {
  std::string text;
  for (Verdict verdict : reports::kVerdicts) {
    const int64_t count = totals.of(verdict);
    if (verdict == Verdict::kPass || count == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, reports::Name(verdict));
  }
  return text.empty() ? "-" : text;
}

// The last column may be of any width.
std::string CaseTable(const Record& record) {
  constexpr const char* kFormat = "{:<18} {:<16} {:>5} {:>5} {:>8} {:>5} {:>5}  {}\n";
  std::string text = fmt::format(kFormat, "engine", "problem", "ranks", "steps", "compared", "cases", "PASS", "other");
  for (const auto& [key, row] : Rows(record)) {
    const std::string ranks = row.min_ranks == row.max_ranks ? std::to_string(row.max_ranks)
                                                             : fmt::format("{}-{}", row.min_ranks, row.max_ranks);
    text += fmt::format(kFormat, key.first, key.second, ranks, row.steps, row.compared, row.totals.sum(),
                        row.totals.pass, OtherVerdicts(row.totals));
  }
  return text;
}

std::string Line(const CaseRecord& entry) {
  return fmt::format("{:<12}{}  {:.2f} s\n", reports::Name(entry.verdict), entry.id, entry.seconds);
}

// "made smaller: data 8 → 2, steps 60 → 1 (23 tried in 6 s)", and the line that was run.
std::string ShrunkText(const std::optional<reports::ShrunkRecord>& shrunk) {
  if (!shrunk) return "";
  constexpr const char* kIndent = "            ";
  const std::string effort =
      fmt::format("{} tried in {:.1f} s{}", Counted(shrunk->tried, "smaller case"), shrunk->seconds,
                  shrunk->finished || !shrunk->note.empty() ? "" : ", then time was up");
  if (shrunk->reduced.empty()) {
    const std::string note = shrunk->note.empty() ? "" : ": " + shrunk->note;
    return fmt::format("{}no smaller case failed like it ({}){}\n", kIndent, effort, note);
  }
  std::string text = fmt::format("{}fails like it: {} ({})\n", kIndent, shrunk->reduced, effort);
  if (!shrunk->message.empty()) text += fmt::format("{}{}\n", kIndent, shrunk->message);
  if (!shrunk->note.empty()) text += fmt::format("{}{}\n", kIndent, shrunk->note);
  if (!shrunk->reproduce.empty()) text += fmt::format("{}{}\n", kIndent, shrunk->reproduce);
  return text;
}

// Cases that were not run for the same reason are one line.
std::string NotRun(const Record& record) {
  std::map<std::pair<Verdict, std::string>, int64_t> reasons;
  bool declined = false;
  for (const CaseRecord& entry : record.cases) {
    const bool unexpected = entry.verdict == Verdict::kUnsupported && !entry.expected_unsupported;
    if (unexpected || entry.verdict == Verdict::kNotRun) ++reasons[{entry.verdict, entry.message}];
    declined |= unexpected;
  }
  std::string text;
  for (const auto& [key, count] : reasons) {
    text += fmt::format("{:<12}{}: {}\n", reports::Name(key.first), Counted(count, "case"), key.second);
  }
  if (declined) text += "            --expect-unsupported PATTERN names cases that the engine may decline\n";
  return text;
}

// What failed besides the finding that leads: a loss that is wrong too means that the fault is before backward.
std::string AlsoFailed(const CaseRecord& entry) {
  std::string names;
  for (const reports::CheckRecord& check : entry.checks) {
    if (check.outcome != CheckOutcome::kFail || entry.message.starts_with(check.detail)) continue;
    names += (names.empty() ? "" : ", ") + check.name;
  }
  return names.empty() ? "" : "            also failed: " + conformance::OneLine(names) + "\n";
}

std::string Findings(const Record& record, bool verbose) {
  std::string text;
  for (const CaseRecord& entry : record.cases) {
    const bool quiet =
        entry.verdict == Verdict::kPass || entry.verdict == Verdict::kUnsupported || entry.verdict == Verdict::kNotRun;
    if (quiet && !verbose) continue;
    text += Line(entry);
    if (!entry.message.empty()) text += fmt::format("            {}\n", entry.message);
    text += AlsoFailed(entry);
    text += reports::DivergenceText(entry.divergence, "            ");
    if (!quiet) text += fmt::format("            {}\n", entry.reproduce);
    text += ShrunkText(entry.shrunk);
  }
  text += NotRun(record);
  return text.empty() ? "" : "\n" + text;
}

void MakePrintable(std::optional<reports::DivergenceRecord>& divergence) {
  using conformance::OneLine;
  if (!divergence) return;
  for (std::string* text :
       {&divergence->quantity, &divergence->tensor, &divergence->region, &divergence->undiagnosed}) {
    *text = OneLine(*text);
  }
  for (reports::HypothesisRecord& hypothesis : divergence->hypotheses) {
    hypothesis.name = OneLine(hypothesis.name);
    hypothesis.says = OneLine(hypothesis.says);
  }
}

void MakePrintable(std::optional<reports::ShrunkRecord>& shrunk) {
  if (!shrunk) return;
  for (std::string* text : {&shrunk->reduced, &shrunk->message, &shrunk->reproduce, &shrunk->note}) {
    *text = conformance::OneLine(*text);
  }
}

// What engines and records of strangers say, fit for a terminal: one line each, without control characters.
Record Printable(Record record) {
  using conformance::OneLine;
  record.engine.name = OneLine(record.engine.name);
  record.engine.version = OneLine(record.engine.version);
  record.text.name = OneLine(record.text.name);
  for (CaseRecord& entry : record.cases) {
    for (std::string* text : {&entry.id, &entry.engine, &entry.message, &entry.reproduce}) *text = OneLine(*text);
    for (auto& [name, value] : entry.axes) value = OneLine(value);
    MakePrintable(entry.divergence);
    MakePrintable(entry.shrunk);
    for (reports::CheckRecord& check : entry.checks) check.detail = OneLine(check.detail);
  }
  for (reports::DefectRecord& defect : record.defects) {
    for (std::string* text : {&defect.id, &defect.title, &defect.message, &defect.hypothesis}) *text = OneLine(*text);
    MakePrintable(defect.divergence);
    for (std::string& name : defect.caught_by) name = OneLine(name);
  }
  return record;
}

std::string_view StateOf(const reports::DefectRecord& defect) {
  if (defect.caught) return "caught";
  return reports::WasNotTried(defect) ? "NOT_RUN" : "SURVIVED";
}

std::string DefectTable(const Record& record) {
  if (record.defects.empty()) return "";
  std::string text = "\nPlanted defects, each turned on in a copy of `optimized`:\n";
  for (const reports::DefectRecord& defect : record.defects) {
    text += fmt::format("  {:<5}{:<10}{}", defect.id, StateOf(defect), defect.title);
    if (!defect.caught_by.empty()) text += fmt::format(" (by {})", fmt::join(defect.caught_by, ", "));
    text += "\n";
    if (!defect.message.empty()) text += fmt::format("       {}\n", defect.message);
    text += reports::DivergenceText(defect.divergence, "       ");
    if (defect.caught && !defect.hypothesis.empty() && !FoundHypothesis(defect)) {
      text += fmt::format("       expected: {}\n", defect.hypothesis);
    }
  }
  return text + DiagnosisTotals(record);
}

std::string Summary(const Record& record) {
  std::string text = Counted(record.listed, "case") + ":";
  for (Verdict verdict : reports::kVerdicts) {
    const int64_t count = record.totals.of(verdict);
    if (count > 0) text += fmt::format(" {} {}", count, reports::Name(verdict));
  }
  if (record.listed == 0) text += " none was selected (--list shows the ids; a pattern must match the whole id)";
  text += ".";
  const auto caught = std::count_if(record.defects.begin(), record.defects.end(),
                                    [](const reports::DefectRecord& defect) { return defect.caught; });
  const auto not_tried = std::count_if(record.defects.begin(), record.defects.end(), reports::WasNotTried);
  if (!record.defects.empty()) text += fmt::format(" {} of {} planted defects caught", caught, record.defects.size());
  if (not_tried > 0) text += fmt::format(", {} not run", not_tried);
  if (!record.defects.empty()) text += ".";
  if (!record.missing_shards.empty()) {
    text += fmt::format(" Missing shards: {}.", fmt::join(record.missing_shards, ", "));
  }
  if (record.interrupted) {
    text += fmt::format(" Interrupted: {} of {} had been judged.", record.totals.sum() - record.totals.not_run,
                        Counted(record.listed, "case"));
  }
  return "\n" + text + "\n";
}

}  // namespace

std::string VerifyTable(const Record& original, bool verbose) {
  const Record record = Printable(original);
  std::string text = fmt::format("{} {} against the reference; text {} ({} bytes), seed {}\n\n", record.engine.name,
                                 record.engine.version, record.text.name, record.text.size_bytes, record.seed);
  if (!record.cases.empty()) text += CaseTable(record);
  return text + Findings(record, verbose) + SensitivityText(record) + DefectTable(record) + Summary(record);
}

}  // namespace plumbline::cli
