// SPDX-License-Identifier: Apache-2.0
// The record of one run of a command, schema version 2: what was run, where, each verdict with the checks behind it,
// and the table of planted defects. It knows nothing of engines or cases: it holds what it is told. Renderers read it,
// and shards of a run merge (merge.h). The rule of exit codes is design.md, section 4, "Verdicts".
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace plumbline::reports {

// A record that is malformed, inconsistent, or cannot be read or written. One line that names the field.
class RecordError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

inline constexpr int64_t kRecordSchema = 2;
inline constexpr uint64_t kMaxRecordBytes = uint64_t{256} << 20;

enum class Verdict { kPass, kFail, kError, kUnsupported, kNotRun, kVacuous };
inline constexpr Verdict kVerdicts[] = {Verdict::kPass,        Verdict::kFail,   Verdict::kError,
                                        Verdict::kUnsupported, Verdict::kNotRun, Verdict::kVacuous};
std::string_view Name(Verdict verdict);  // "PASS", "FAIL", "ERROR", "UNSUPPORTED", "NOT_RUN", "VACUOUS"

enum class CheckOutcome { kPass, kFail, kVacuous, kNotApplicable };
std::string_view Name(CheckOutcome outcome);  // "pass", "fail", "vacuous", "not_applicable"

struct CheckRecord {
  std::string name = {};
  CheckOutcome outcome = CheckOutcome::kPass;
  int64_t compared = 0;  // values compared
  std::string detail = {};
  friend bool operator==(const CheckRecord&, const CheckRecord&) = default;
};

// What a failed case was made smaller to.
struct ShrunkRecord {
  std::string reduced = {};    // "data 8 → 2, steps 60 → 1"; empty: nothing smaller failed for the same reason
  int64_t tried = 0;           // smaller cases that were run
  double seconds = 0;          // all in all
  bool finished = false;       // false: time was up, or it was interrupted, while smaller cases were left to try
  std::string message = {};    // what the smallest says, as `message` of a case
  std::string reproduce = {};  // one command line, which has been run; empty: none has
  std::string note = {};       // why there is no line although it was reduced
  friend bool operator==(const ShrunkRecord&, const ShrunkRecord&) = default;
};

// What an engine may have done wrong, and how much of the divergence that leaves unexplained: 0 nothing, 1 all.
struct HypothesisRecord {
  std::string name = {};
  std::string says = {};  // one line, with the numbers of the variant that fits best
  double residual = 1;    // finite, 0 or more
  bool fits = false;      // the residual is within the stated limit
  friend bool operator==(const HypothesisRecord&, const HypothesisRecord&) = default;
};

// The first place, in the order in which a step computes, where an engine leaves the truth.
struct DivergenceRecord {
  int64_t step = -1;                              // -1: not known
  std::string quantity = {};                      // "gradient", "moment", "master", "weight", "loss", "lr", ...
  std::string tensor = {};                        // empty: no tensor
  int64_t layer = -1;                             // -1: none
  std::vector<int64_t> ranks = {};                // that hold something else; empty: not known
  std::string region = {};                        // "elements 114 to 227 of 228"
  std::vector<HypothesisRecord> hypotheses = {};  // best first, at most three
  double residual_limit = 0;                      // above it a hypothesis does not fit
  std::string undiagnosed = {};                   // why no hypothesis was tested; empty where some were
  friend bool operator==(const DivergenceRecord&, const DivergenceRecord&) = default;
};

struct CaseRecord {
  std::string id = {};
  Verdict verdict = Verdict::kPass;
  bool expected_unsupported = false;  // on the engine's list of expected UNSUPPORTED
  std::string engine = {};
  std::map<std::string, std::string> axes = {};
  std::vector<CheckRecord> checks = {};
  std::string message = {};    // one line
  std::string reproduce = {};  // one command line
  double seconds = 0;
  int64_t steps = 0;
  int64_t ranks = 0;
  std::optional<DivergenceRecord> divergence = {};  // of a case that failed
  std::optional<ShrunkRecord> shrunk = {};          // of the first failed case of each reason
  friend bool operator==(const CaseRecord&, const CaseRecord&) = default;
};

struct DefectRecord {
  std::string id = {};
  std::string title = {};
  bool caught = false;
  Verdict verdict = Verdict::kPass;         // of the run with the defect turned on
  std::vector<std::string> caught_by = {};  // names of checks
  int64_t first_step = -1;                  // -1: none
  std::string tensor = {};
  std::string message = {};
  std::string expect = {};  // what its edit says: checks, then what else is known ("step 0", "tensor ...", "rank 3")
  std::string hypothesis = {};  // that its edit names; empty: none is expected
  std::optional<DivergenceRecord> divergence = {};
  friend bool operator==(const DefectRecord&, const DefectRecord&) = default;
};

struct VerdictTotals {
  int64_t pass = 0;
  int64_t fail = 0;
  int64_t error = 0;
  int64_t unsupported = 0;
  int64_t not_run = 0;
  int64_t vacuous = 0;

  int64_t& of(Verdict verdict);
  int64_t of(Verdict verdict) const;
  int64_t sum() const { return pass + fail + error + unsupported + not_run + vacuous; }
  friend bool operator==(const VerdictTotals&, const VerdictTotals&) = default;
};

struct TextSource {
  std::string name = {};
  int64_t size_bytes = 0;
  friend bool operator==(const TextSource&, const TextSource&) = default;
};

struct EngineRecord {
  std::string name = {};
  std::string version = {};
  std::string program = {};  // file name, no folder
  friend bool operator==(const EngineRecord&, const EngineRecord&) = default;
};

struct ShardRecord {
  int64_t index = 1;  // 1 ... count
  int64_t count = 1;
  friend bool operator==(const ShardRecord&, const ShardRecord&) = default;
};

struct Record {
  std::string command = "verify";
  std::string created = {};  // UTC, "2030-01-31T23:59:59Z"
  uint64_t seed = 0;
  std::map<std::string, std::string> options = {};
  TextSource text = {};
  // Fingerprint: "compiler", "build_mode", "libtorch", "os", "cpu_model", "cores", "commit", ...
  std::map<std::string, std::string> environment = {};
  EngineRecord engine = {};
  ShardRecord shard = {};
  std::vector<int64_t> missing_shards = {};  // of a partial merge, which never has exit code 0
  bool interrupted = false;
  int64_t listed = 0;  // cases of this shard's list, counted when the list was made
  std::vector<CaseRecord> cases = {};
  std::vector<DefectRecord> defects = {};
  VerdictTotals totals = {};
  int64_t exit_code = 0;
  friend bool operator==(const Record&, const Record&) = default;
};

// Counts the cases by verdict, whatever record.totals says.
VerdictTotals Totals(const Record& record);

// Throws RecordError unless record.totals is what the cases say and adds up to record.listed.
void CheckTotals(const Record& record);

// Throws RecordError for a case that is PASS although one of its checks failed or was vacuous.
void CheckVerdicts(const Record& record);

// 0 if at least one case is PASS and all others are PASS, expected UNSUPPORTED or, without `require`, NOT_RUN, all
// defects are caught, the totals add up, nothing was interrupted and no shard is missing. Otherwise 1. Does not read
// exit_code.
int ExitCodeFor(const Record& record, bool require);

// Sets totals and exit_code from the rest. (`listed` is not touched: it is the independent count.)
void Finish(Record& record, bool require);

// Every field is written and required; an unknown or repeated key is an error, as is a number of the wrong type or out
// of range. ParseRecord(ToJson(r)) == r for every r with valid UTF-8 and finite numbers; invalid bytes become U+FFFD,
// since a record must not be lost over a line that an engine printed. RecordError for a number that is not finite.
std::string ToJson(const Record& record);
Record ParseRecord(std::string_view json, std::string_view where);

Record ReadRecord(const std::filesystem::path& path);  // at most kMaxRecordBytes
// Temporary neighbour, then rename.
void WriteRecord(const std::filesystem::path& path, const Record& record);

}  // namespace plumbline::reports
