// SPDX-License-Identifier: Apache-2.0
// A record as JSON: one function to write and one to read each structure, with the keys in the same order. Ranges are
// checked once, on the structure, for both directions: what is written can be read.
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <utility>

#include "reports/record/record.h"

namespace plumbline::reports {
namespace {

constexpr int64_t kMaxShards = 100'000;  // a merge lists missing shards one by one

using Json = nlohmann::json;                 // reading: finds keys fast however many a stranger wrote
using OrderedJson = nlohmann::ordered_json;  // writing

// --- ranges ---

void Demand(bool ok, const std::string& field, const std::string& value, const std::string& allowed) {
  if (!ok) throw RecordError(field + " is " + value + "; allowed: " + allowed);
}

void DemandAtLeast(int64_t value, int64_t least, const std::string& field) {
  Demand(value >= least, field, std::to_string(value), "at least " + std::to_string(least));
}

bool IsUtcTime(const std::string& text) {
  constexpr std::string_view kForm = "dddd-dd-ddTdd:dd:ddZ";
  const auto fits = [](char c, char form) { return form == 'd' ? c >= '0' && c <= '9' : c == form; };
  return text.size() == kForm.size() && std::equal(text.begin(), text.end(), kForm.begin(), fits);
}

void ValidateDivergence(const std::optional<DivergenceRecord>& divergence, const std::string& path) {
  if (!divergence) return;
  const auto demand = [](double value, const std::string& field) {
    Demand(std::isfinite(value) && value >= 0, field, std::to_string(value), "a finite number, at least 0");
  };
  DemandAtLeast(divergence->step, -1, path + ".step");
  DemandAtLeast(divergence->layer, -1, path + ".layer");
  for (int64_t rank : divergence->ranks) DemandAtLeast(rank, 0, path + ".ranks");
  demand(divergence->residual_limit, path + ".residual_limit");
  for (const HypothesisRecord& hypothesis : divergence->hypotheses) {
    demand(hypothesis.residual, path + ".hypotheses.residual");
  }
}

void ValidateCase(const CaseRecord& entry, const std::string& path) {
  Demand(std::isfinite(entry.seconds) && entry.seconds >= 0, path + ".seconds", std::to_string(entry.seconds),
         "a finite number, at least 0");
  DemandAtLeast(entry.steps, 0, path + ".steps");
  DemandAtLeast(entry.ranks, 0, path + ".ranks");
  if (entry.shrunk) {
    const double seconds = entry.shrunk->seconds;
    Demand(std::isfinite(seconds) && seconds >= 0, path + ".shrunk.seconds", std::to_string(seconds),
           "a finite number, at least 0");
    DemandAtLeast(entry.shrunk->tried, 0, path + ".shrunk.tried");
  }
  ValidateDivergence(entry.divergence, path + ".divergence");
  for (size_t i = 0; i < entry.checks.size(); ++i) {
    DemandAtLeast(entry.checks[i].compared, 0, path + ".checks[" + std::to_string(i) + "].compared");
  }
}

void Validate(const Record& record) {
  Demand(IsUtcTime(record.created), "created", "\"" + record.created + "\"", "UTC as YYYY-MM-DDThh:mm:ssZ");
  DemandAtLeast(record.text.size_bytes, 0, "text.size_bytes");
  DemandAtLeast(record.shard.count, 1, "shard.count");
  Demand(record.shard.count <= kMaxShards, "shard.count", std::to_string(record.shard.count),
         "1 to " + std::to_string(kMaxShards));
  Demand(record.shard.index >= 1 && record.shard.index <= record.shard.count, "shard.index",
         std::to_string(record.shard.index), "1 to " + std::to_string(record.shard.count));
  for (int64_t missing : record.missing_shards) DemandAtLeast(missing, 1, "missing_shards");
  DemandAtLeast(record.listed, 0, "listed");
  for (size_t i = 0; i < record.cases.size(); ++i) ValidateCase(record.cases[i], "cases[" + std::to_string(i) + "]");
  for (size_t i = 0; i < record.defects.size(); ++i) {
    const std::string path = "defects[" + std::to_string(i) + "]";
    DemandAtLeast(record.defects[i].first_step, -1, path + ".first_step");
    ValidateDivergence(record.defects[i].divergence, path + ".divergence");
  }
  for (Verdict verdict : kVerdicts) DemandAtLeast(record.totals.of(verdict), 0, "totals." + std::string(Name(verdict)));
  Demand(record.exit_code >= 0 && record.exit_code <= 255, "exit_code", std::to_string(record.exit_code), "0 to 255");
}

// --- writing ---

OrderedJson ToNode(const CheckRecord& check);
OrderedJson ToNode(const HypothesisRecord& hypothesis);
OrderedJson ToNode(const CaseRecord& entry);
OrderedJson ToNode(const DefectRecord& defect);

OrderedJson ToNode(const CheckRecord& check) {
  return {
      {"name", check.name}, {"outcome", Name(check.outcome)}, {"compared", check.compared}, {"detail", check.detail}};
}

template <typename T>
OrderedJson ToNodes(const std::vector<T>& values) {
  OrderedJson nodes = OrderedJson::array();
  for (const T& value : values) nodes.push_back(ToNode(value));
  return nodes;
}

// Not by initializer list: that makes an array of an empty map.
OrderedJson ToNode(const std::map<std::string, std::string>& map) {
  OrderedJson node = OrderedJson::object();
  for (const auto& [key, value] : map) node[key] = value;
  return node;
}

OrderedJson ToNode(const std::optional<ShrunkRecord>& shrunk) {
  if (!shrunk) return nullptr;
  OrderedJson node = OrderedJson::object();
  node["reduced"] = shrunk->reduced;
  node["tried"] = shrunk->tried;
  node["seconds"] = shrunk->seconds;
  node["finished"] = shrunk->finished;
  node["message"] = shrunk->message;
  node["reproduce"] = shrunk->reproduce;
  node["note"] = shrunk->note;
  return node;
}

OrderedJson ToNode(const HypothesisRecord& hypothesis) {
  OrderedJson node = OrderedJson::object();
  node["name"] = hypothesis.name;
  node["says"] = hypothesis.says;
  node["residual"] = hypothesis.residual;
  node["fits"] = hypothesis.fits;
  return node;
}

OrderedJson ToNode(const std::optional<DivergenceRecord>& divergence) {
  if (!divergence) return nullptr;
  OrderedJson node = OrderedJson::object();
  node["step"] = divergence->step;
  node["quantity"] = divergence->quantity;
  node["tensor"] = divergence->tensor;
  node["layer"] = divergence->layer;
  node["ranks"] = divergence->ranks;
  node["region"] = divergence->region;
  node["hypotheses"] = ToNodes(divergence->hypotheses);
  node["residual_limit"] = divergence->residual_limit;
  node["undiagnosed"] = divergence->undiagnosed;
  return node;
}

OrderedJson ToNode(const CaseRecord& entry) {
  OrderedJson node = OrderedJson::object();
  node["id"] = entry.id;
  node["verdict"] = Name(entry.verdict);
  node["expected_unsupported"] = entry.expected_unsupported;
  node["engine"] = entry.engine;
  node["axes"] = ToNode(entry.axes);
  node["checks"] = ToNodes(entry.checks);
  node["message"] = entry.message;
  node["reproduce"] = entry.reproduce;
  node["seconds"] = entry.seconds;
  node["steps"] = entry.steps;
  node["ranks"] = entry.ranks;
  node["divergence"] = ToNode(entry.divergence);
  node["shrunk"] = ToNode(entry.shrunk);
  return node;
}

OrderedJson ToNode(const DefectRecord& defect) {
  OrderedJson node = OrderedJson::object();
  node["id"] = defect.id;
  node["title"] = defect.title;
  node["caught"] = defect.caught;
  node["verdict"] = Name(defect.verdict);
  node["caught_by"] = defect.caught_by;
  node["first_step"] = defect.first_step;
  node["tensor"] = defect.tensor;
  node["message"] = defect.message;
  node["expect"] = defect.expect;
  node["hypothesis"] = defect.hypothesis;
  node["divergence"] = ToNode(defect.divergence);
  return node;
}

OrderedJson ToNode(const VerdictTotals& totals) {
  OrderedJson node = OrderedJson::object();
  for (Verdict verdict : kVerdicts) node[std::string(Name(verdict))] = totals.of(verdict);
  return node;
}

OrderedJson ToNode(const Record& record) {
  OrderedJson node = OrderedJson::object();
  node["schema"] = kRecordSchema;
  node["command"] = record.command;
  node["created"] = record.created;
  node["seed"] = record.seed;
  node["options"] = ToNode(record.options);
  node["text"] = {{"name", record.text.name}, {"size_bytes", record.text.size_bytes}};
  node["environment"] = ToNode(record.environment);
  node["engine"] = {
      {"name", record.engine.name}, {"version", record.engine.version}, {"program", record.engine.program}};
  node["shard"] = {{"index", record.shard.index}, {"count", record.shard.count}};
  node["missing_shards"] = record.missing_shards;
  node["interrupted"] = record.interrupted;
  node["listed"] = record.listed;
  node["totals"] = ToNode(record.totals);
  node["exit_code"] = record.exit_code;
  node["cases"] = ToNodes(record.cases);
  node["defects"] = ToNodes(record.defects);
  return node;
}

// --- reading ---

RecordError NoRecord(const std::string& why) {
  return RecordError("not a record (record.json of `verify` or `merge`): " + why);
}

std::string Shown(const Json& node) {
  std::string value = node.dump(-1, ' ', true);
  if (value.size() > 60) value = value.substr(0, 60) + "...";
  return value;
}

// A value and where it stands. Every access checks the type.
class Field {
 public:
  Field(const Json& node, std::string path) : node_(node), path_(std::move(path)) {}

  // The object has these keys, no others, in any order.
  void DemandKeys(std::initializer_list<std::string_view> keys) const {
    if (!node_.is_object()) Reject("an object");
    for (std::string_view key : keys) {
      if (!node_.contains(std::string(key))) throw RecordError(Where() + " has no \"" + std::string(key) + "\"");
    }
    for (const auto& item : node_.items()) {
      if (std::find(keys.begin(), keys.end(), item.key()) == keys.end()) {
        throw RecordError(Where() + " has the unknown key \"" + item.key() + "\"");
      }
    }
  }

  Field operator[](const char* key) const { return {node_.at(key), path_.empty() ? key : path_ + "." + key}; }

  template <typename Read>
  auto Array(const Read& read) const {
    if (!node_.is_array()) Reject("an array");
    std::vector<decltype(read(*this))> values;
    for (size_t i = 0; i < node_.size(); ++i)
      values.push_back(read(Field(node_[i], path_ + "[" + std::to_string(i) + "]")));
    return values;
  }

  std::map<std::string, std::string> StringMap() const {
    if (!node_.is_object()) Reject("an object");
    std::map<std::string, std::string> map;
    for (const auto& item : node_.items()) map[item.key()] = Field(item.value(), path_ + "." + item.key()).String();
    return map;
  }

  std::string String() const {
    if (!node_.is_string()) Reject("a string");
    return node_.get<std::string>();
  }
  bool Bool() const {
    if (!node_.is_boolean()) Reject("true or false");
    return node_.get<bool>();
  }
  uint64_t UInt64() const {
    if (!node_.is_number_unsigned()) Reject("an unsigned 64-bit integer");
    return node_.get<uint64_t>();
  }
  int64_t Int() const {
    constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    if (!node_.is_number_integer() || (node_.is_number_unsigned() && node_.get<uint64_t>() > kMax)) {
      Reject("a signed 64-bit integer");
    }
    return node_.get<int64_t>();
  }
  double Number() const {
    if (!node_.is_number()) Reject("a number");
    return node_.get<double>();
  }
  bool IsNull() const { return node_.is_null(); }
  // One of an enum's names; the enum's values count from 0 to `last`.
  template <typename Enum>
  Enum NameOf(Enum last) const {
    const std::string text = String();
    std::string allowed;
    for (int i = 0; i <= static_cast<int>(last); ++i) {
      if (Name(static_cast<Enum>(i)) == text) return static_cast<Enum>(i);
      allowed += (i > 0 ? ", " : "") + std::string(Name(static_cast<Enum>(i)));
    }
    Reject(allowed);
  }

 private:
  std::string Where() const { return path_.empty() ? "the record" : path_; }

  [[noreturn]] void Reject(const std::string& allowed) const {
    throw RecordError(Where() + " is " + Shown(node_) + "; allowed: " + allowed);
  }

  const Json& node_;
  std::string path_;
};

CheckRecord ReadCheck(const Field& field) {
  field.DemandKeys({"name", "outcome", "compared", "detail"});
  return {.name = field["name"].String(),
          .outcome = field["outcome"].NameOf(CheckOutcome::kNotApplicable),
          .compared = field["compared"].Int(),
          .detail = field["detail"].String()};
}

std::optional<ShrunkRecord> ReadShrunk(const Field& field) {
  if (field.IsNull()) return std::nullopt;
  field.DemandKeys({"reduced", "tried", "seconds", "finished", "message", "reproduce", "note"});
  return ShrunkRecord{.reduced = field["reduced"].String(),
                      .tried = field["tried"].Int(),
                      .seconds = field["seconds"].Number(),
                      .finished = field["finished"].Bool(),
                      .message = field["message"].String(),
                      .reproduce = field["reproduce"].String(),
                      .note = field["note"].String()};
}

HypothesisRecord ReadHypothesis(const Field& field) {
  field.DemandKeys({"name", "says", "residual", "fits"});
  return {.name = field["name"].String(),
          .says = field["says"].String(),
          .residual = field["residual"].Number(),
          .fits = field["fits"].Bool()};
}

std::optional<DivergenceRecord> ReadDivergence(const Field& field) {
  if (field.IsNull()) return std::nullopt;
  field.DemandKeys(
      {"step", "quantity", "tensor", "layer", "ranks", "region", "hypotheses", "residual_limit", "undiagnosed"});
  return DivergenceRecord{.step = field["step"].Int(),
                          .quantity = field["quantity"].String(),
                          .tensor = field["tensor"].String(),
                          .layer = field["layer"].Int(),
                          .ranks = field["ranks"].Array([](const Field& rank) { return rank.Int(); }),
                          .region = field["region"].String(),
                          .hypotheses = field["hypotheses"].Array(ReadHypothesis),
                          .residual_limit = field["residual_limit"].Number(),
                          .undiagnosed = field["undiagnosed"].String()};
}

CaseRecord ReadCase(const Field& field) {
  field.DemandKeys({"id", "verdict", "expected_unsupported", "engine", "axes", "checks", "message", "reproduce",
                    "seconds", "steps", "ranks", "divergence", "shrunk"});
  return {.id = field["id"].String(),
          .verdict = field["verdict"].NameOf(Verdict::kVacuous),
          .expected_unsupported = field["expected_unsupported"].Bool(),
          .engine = field["engine"].String(),
          .axes = field["axes"].StringMap(),
          .checks = field["checks"].Array(ReadCheck),
          .message = field["message"].String(),
          .reproduce = field["reproduce"].String(),
          .seconds = field["seconds"].Number(),
          .steps = field["steps"].Int(),
          .ranks = field["ranks"].Int(),
          .divergence = ReadDivergence(field["divergence"]),
          .shrunk = ReadShrunk(field["shrunk"])};
}

DefectRecord ReadDefect(const Field& field) {
  field.DemandKeys({"id", "title", "caught", "verdict", "caught_by", "first_step", "tensor", "message", "expect",
                    "hypothesis", "divergence"});
  return {.id = field["id"].String(),
          .title = field["title"].String(),
          .caught = field["caught"].Bool(),
          .verdict = field["verdict"].NameOf(Verdict::kVacuous),
          .caught_by = field["caught_by"].Array([](const Field& name) { return name.String(); }),
          .first_step = field["first_step"].Int(),
          .tensor = field["tensor"].String(),
          .message = field["message"].String(),
          .expect = field["expect"].String(),
          .hypothesis = field["hypothesis"].String(),
          .divergence = ReadDivergence(field["divergence"])};
}

VerdictTotals ReadTotals(const Field& field) {
  field.DemandKeys({"PASS", "FAIL", "ERROR", "UNSUPPORTED", "NOT_RUN", "VACUOUS"});
  VerdictTotals totals;
  for (Verdict verdict : kVerdicts) totals.of(verdict) = field[std::string(Name(verdict)).c_str()].Int();
  return totals;
}

TextSource ReadText(const Field& field) {
  field.DemandKeys({"name", "size_bytes"});
  return {.name = field["name"].String(), .size_bytes = field["size_bytes"].Int()};
}

EngineRecord ReadEngine(const Field& field) {
  field.DemandKeys({"name", "version", "program"});
  return {.name = field["name"].String(), .version = field["version"].String(), .program = field["program"].String()};
}

ShardRecord ReadShard(const Field& field) {
  field.DemandKeys({"index", "count"});
  return {.index = field["index"].Int(), .count = field["count"].Int()};
}

Record ReadRecordNode(const Json& root) {
  if (!root.is_object()) throw NoRecord("it is " + Shown(root));
  if (!root.contains("schema")) throw NoRecord("it has no \"schema\"");
  const Field field(root, "");
  // Before the keys, since another schema may have others.
  const int64_t schema = field["schema"].Int();
  Demand(schema == kRecordSchema, "schema", std::to_string(schema), std::to_string(kRecordSchema));
  field.DemandKeys({"schema", "command", "created", "seed", "options", "text", "environment", "engine", "shard",
                    "missing_shards", "interrupted", "listed", "totals", "exit_code", "cases", "defects"});
  return {.command = field["command"].String(),
          .created = field["created"].String(),
          .seed = field["seed"].UInt64(),
          .options = field["options"].StringMap(),
          .text = ReadText(field["text"]),
          .environment = field["environment"].StringMap(),
          .engine = ReadEngine(field["engine"]),
          .shard = ReadShard(field["shard"]),
          .missing_shards = field["missing_shards"].Array([](const Field& shard) { return shard.Int(); }),
          .interrupted = field["interrupted"].Bool(),
          .listed = field["listed"].Int(),
          .cases = field["cases"].Array(ReadCase),
          .defects = field["defects"].Array(ReadDefect),
          .totals = ReadTotals(field["totals"]),
          .exit_code = field["exit_code"].Int()};
}

// nlohmann-json keeps the last of two equal keys and puts no limit to nesting; a record has six levels.
class StructureGuard {
 public:
  bool operator()(int depth, Json::parse_event_t event, Json& parsed) {
    constexpr int kMaxDepth = 8;
    if (depth > kMaxDepth) throw RecordError("nested deeper than " + std::to_string(kMaxDepth) + " levels");
    if (event == Json::parse_event_t::object_start) keys_.emplace_back();
    if (event == Json::parse_event_t::object_end) keys_.pop_back();
    if (event == Json::parse_event_t::key && !keys_.back().insert(parsed.get<std::string>()).second) {
      throw RecordError("the key \"" + parsed.get<std::string>() + "\" appears twice in one object");
    }
    return true;
  }

 private:
  std::vector<std::set<std::string>> keys_;
};

// "line 3, column 7" of the byte with this number, counted from 1.
std::string Position(std::string_view text, size_t byte) {
  const std::string_view before = text.substr(0, byte > 0 ? byte - 1 : 0);
  const auto lines = std::count(before.begin(), before.end(), '\n');
  const size_t line_begin = before.rfind('\n') + 1;  // 0 where there is none
  return "line " + std::to_string(lines + 1) + ", column " + std::to_string(before.size() - line_begin + 1);
}

Json ParseJson(std::string_view text) {
  if (text.size() > kMaxRecordBytes) {
    throw RecordError("longer than " + std::to_string(kMaxRecordBytes) + " bytes");
  }
  StructureGuard guard;
  try {
    return Json::parse(text,
                       [&](int depth, Json::parse_event_t event, Json& parsed) { return guard(depth, event, parsed); });
  } catch (const Json::parse_error& error) {
    const bool empty = text.find_first_not_of(" \t\r\n") == std::string_view::npos;
    throw NoRecord(empty ? "it is empty" : "no JSON from " + Position(text, error.byte) + " on");
  } catch (const Json::out_of_range&) {  // a number beyond double
    throw NoRecord("a number is out of range");
  }
}

}  // namespace

std::string ToJson(const Record& record) {
  Validate(record);
  return ToNode(record).dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Record ParseRecord(std::string_view json, std::string_view where) {
  try {
    Record record = ReadRecordNode(ParseJson(json));
    Validate(record);
    return record;
  } catch (const RecordError& error) {
    throw RecordError(std::string(where) + ": " + error.what());
  }
}

Record ReadRecord(const std::filesystem::path& path) {
  std::error_code reason;
  const uintmax_t size = std::filesystem::file_size(path, reason);  // an error for what is not a regular file
  if (reason) throw RecordError(path.string() + ": cannot be read: " + reason.message());
  if (size > kMaxRecordBytes)
    throw RecordError(path.string() + ": longer than " + std::to_string(kMaxRecordBytes) + " bytes");
  std::string text(size, '\0');
  std::ifstream file(path, std::ios::binary);
  if (!file.read(text.data(), static_cast<std::streamsize>(size)))
    throw RecordError(path.string() + ": cannot be read");
  return ParseRecord(text, path.string());
}

void WriteRecord(const std::filesystem::path& path, const Record& record) {
  const std::string text = ToJson(record);
  const std::filesystem::path neighbour = path.string() + ".tmp";
  std::ofstream file(neighbour, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  std::error_code reason;
  if (file) std::filesystem::rename(neighbour, path, reason);
  if (file && !reason) return;
  const std::string why = reason ? reason.message() : std::strerror(errno);
  std::filesystem::remove(neighbour, reason);
  throw RecordError(path.string() + ": cannot be written: " + why);
}

}  // namespace plumbline::reports
