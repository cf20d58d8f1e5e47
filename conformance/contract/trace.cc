// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/trace.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>

#include "conformance/contract/error.h"
#include "conformance/contract/file_io.h"
#include "conformance/contract/strict_json.h"

namespace plumbline::contract {
namespace {

constexpr size_t kHashDigits = 16;
constexpr uint64_t kMaxTraceBytes = uint64_t{256} << 20;
constexpr int64_t kMaxElems = int64_t{1} << 40;  // of a parameter
constexpr int64_t kMaxCount = int64_t{1} << 41;  // of norms: what a state may hold and what a run adds to it

std::string Hex(uint64_t value) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text(kHashDigits, '0');
  for (size_t i = kHashDigits; i-- > 0; value >>= 4) text[i] = kDigits[value & 15];
  return text;
}

uint64_t ParseHex(const JsonValue& value) {
  const std::string text = value.String();
  uint64_t parsed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed, 16);
  if (text.size() != kHashDigits || error != std::errc() || end != text.data() + text.size()) {
    value.Reject("16 hexadecimal digits");
  }
  return parsed;
}

void AppendSlices(std::string& json, TensorKind kind, bool with_sums, const std::vector<SliceDigest>& slices) {
  json += ", \"" + std::string(Name(kind)) + "\": [";
  for (size_t i = 0; i < slices.size(); ++i) {
    const SliceDigest& slice = slices[i];
    json += (i ? ", [" : "[") + JsonQuote(slice.tensor) + ", " + std::to_string(slice.begin) + ", " +
            std::to_string(slice.end) + ", \"" + Hex(slice.digest.hash) + "\"";
    if (with_sums) {
      json += ", " + std::to_string(slice.digest.sum) + ", " + std::to_string(slice.digest.sum_squares) + ", " +
              std::to_string(slice.digest.sum_indexed);
    }
    json += "]";
  }
  json += "]";
}

// JSON has no NaN and no infinity: null stands for both.
std::string NumberOrNull(double value) { return std::isfinite(value) ? JsonNumber(value) : "null"; }

double ParseNumberOrNull(const JsonValue& value) {
  return value.IsNull() ? std::numeric_limits<double>::quiet_NaN() : value.Number();
}

std::string RealJson(const RealStep& real) {
  std::string lr;
  for (double value : real.lr) lr += (lr.empty() ? "" : ", ") + JsonNumber(value);
  std::string json = ", \"lr\": [" + lr + "], \"gradient_norm\": " + NumberOrNull(real.gradient_norm) +
                     ", \"skipped\": " + (real.skipped ? "true" : "false");
  if (const auto& history = real.norm_history) {
    json += ", \"norm_history\": [" + std::to_string(history->count) + ", " + NumberOrNull(history->mean) + ", " +
            NumberOrNull(history->variance) + "]";
  }
  if (const auto& scaler = real.loss_scaler) {
    json += ", \"loss_scaler\": [" + NumberOrNull(scaler->scale) + ", " + std::to_string(scaler->steps) + ", " +
            std::to_string(scaler->last_overflow) + ", " + std::to_string(scaler->hysteresis) + "]";
  }
  return json;
}

NormHistory ParseNormHistory(const JsonValue& history) {
  if (history.Size() != 3) history.Reject("an array of 3 numbers");
  return {history[0].Int(0, kMaxCount), ParseNumberOrNull(history[1]), ParseNumberOrNull(history[2])};
}

LossScaler ParseLossScaler(const JsonValue& scaler) {
  if (scaler.Size() != 4) scaler.Reject("an array of 4 numbers");
  return {ParseNumberOrNull(scaler[0]), scaler[1].Int(0, kMaxCount), scaler[2].Int(-1, kMaxCount),
          scaler[3].Int(0, kMaxCount)};
}

std::string CommJson(const StepRecord& record) {
  std::string json;
  for (const auto& [kind, count] : *record.comm) {
    json += (json.empty() ? "" : ", ") + JsonQuote(kind) + ": [" + std::to_string(count.calls) + ", " +
            std::to_string(count.bytes) + "]";
  }
  return ", \"comm\": {" + json + "}, \"comm_sequence\": \"" + Hex(record.comm_sequence) + "\"";
}

std::string MemoryJson(const std::map<std::string, int64_t>& peaks) {
  std::string json;
  for (const auto& [category, bytes] : peaks) {
    json += (json.empty() ? "" : ", ") + JsonQuote(category) + ": " + std::to_string(bytes);
  }
  return ", \"memory_peak_bytes\": {" + json + "}";
}

std::string ToJson(const StepRecord& record) {
  std::string json = "{\"record\": \"step\", \"step\": " + std::to_string(record.step) +
                     ", \"loss\": " + NumberOrNull(record.loss) + ", \"tokens\": " + std::to_string(record.tokens);
  if (record.real) json += RealJson(*record.real);
  for (TensorKind kind : kTensorKinds) {
    if (kind == TensorKind::kSecondMoment && record.of(kind).empty()) continue;
    AppendSlices(json, kind, kind == TensorKind::kGradient && !record.real, record.of(kind));
  }
  if (record.comm) json += CommJson(record);
  if (!record.memory_peak_bytes.empty()) json += MemoryJson(record.memory_peak_bytes);
  if (record.comm_wait_us) json += ", \"comm_wait_us\": " + std::to_string(*record.comm_wait_us);
  return json + "}";
}

// Longer than any name of a parameter, short enough to be repeated in a message.
constexpr size_t kMaxNameBytes = 256;

std::vector<SliceDigest> ParseSlices(const JsonValue& array, bool with_sums) {
  const size_t num_fields = with_sums ? 7 : 4;
  std::vector<SliceDigest> slices;
  for (size_t i = 0; i < array.Size(); ++i) {
    const JsonValue entry = array[i];
    if (entry.Size() != num_fields) entry.Reject("an array of " + std::to_string(num_fields) + " fields");
    SliceDigest slice;
    slice.tensor = entry[0].Name(kMaxNameBytes);
    slice.begin = entry[1].Int(0, kMaxElems - 1);
    slice.end = entry[2].Int(slice.begin + 1, kMaxElems);
    slice.digest.hash = ParseHex(entry[3]);
    if (with_sums) {
      slice.digest.sum = entry[4].Int();
      slice.digest.sum_squares = entry[5].Int();
      slice.digest.sum_indexed = static_cast<uint64_t>(entry[6].Int(0, static_cast<int64_t>(kIndexedModulus) - 1));
    }
    slices.push_back(std::move(slice));
  }
  return slices;
}

std::optional<RealStep> ParseReal(const JsonValue& root) {
  if (!root.Find("lr") && !root.Find("gradient_norm") && !root.Find("skipped")) return std::nullopt;
  RealStep real;
  const JsonValue lr = root.At("lr");
  for (size_t i = 0; i < lr.Size(); ++i) real.lr.push_back(lr[i].Number());
  real.gradient_norm = ParseNumberOrNull(root.At("gradient_norm"));
  real.skipped = root.At("skipped").Bool();
  if (const auto history = root.Find("norm_history")) real.norm_history = ParseNormHistory(*history);
  if (const auto scaler = root.Find("loss_scaler")) real.loss_scaler = ParseLossScaler(*scaler);
  return real;
}

void ParseComm(const JsonValue& root, StepRecord& record) {
  if (!root.Find("comm") && !root.Find("comm_sequence")) return;
  record.comm.emplace();
  const JsonValue comm = root.At("comm");
  for (const std::string& kind : comm.Keys()) {
    const JsonValue entry = comm.At(kind);
    if (entry.Size() != 2) entry.Reject("[calls, bytes]");
    (*record.comm)[kind] = {entry[0].Int(0), entry[1].Int(0)};
  }
  record.comm_sequence = ParseHex(root.At("comm_sequence"));
}

// expected_step is empty for the first step of a trace.
StepRecord ParseStep(const JsonValue& root, std::optional<int64_t> expected_step) {
  root.AllowOnly({"record", "step", "loss", "tokens", "lr", "gradient_norm", "skipped", "norm_history", "loss_scaler", "gradient",
                  "moment", "second_moment", "master", "weight", "comm", "comm_sequence", "memory_peak_bytes",
                  "comm_wait_us"});
  StepRecord record;
  record.step = expected_step ? root.At("step").Int(*expected_step, *expected_step)
                              : root.At("step").Int(0, std::numeric_limits<int64_t>::max() / 2);
  record.real = ParseReal(root);
  record.loss = record.real ? ParseNumberOrNull(root.At("loss")) : root.At("loss").Number();
  record.tokens = root.At("tokens").Int(0);
  for (TensorKind kind : kTensorKinds) {
    const std::optional<JsonValue> array = root.Find(Name(kind));
    const bool optional = kind == TensorKind::kMoment || kind == TensorKind::kSecondMoment;
    if (!array && !optional) root.At(Name(kind)).Size();
    if (array) record.of(kind) = ParseSlices(*array, kind == TensorKind::kGradient && !record.real);
  }
  ParseComm(root, record);
  if (const auto memory = root.Find("memory_peak_bytes")) {
    for (const std::string& category : memory->Keys()) record.memory_peak_bytes[category] = memory->At(category).Int(0);
  }
  if (const auto wait = root.Find("comm_wait_us")) record.comm_wait_us = wait->Int(0);
  return record;
}

void ParseHeader(const JsonValue& root, Trace& trace) {
  if (root.At("record").String() != "header") root.At("record").Reject("\"header\" in the first line");
  root.AllowOnly({"record", "protocol", "engine", "rank", "world", "config"});
  root.At("protocol").Int(1, 1);
  trace.engine = root.At("engine").Name(kMaxNameBytes);
  trace.world = root.At("world").Int(1, int64_t{1} << 20);
  trace.rank = root.At("rank").Int(0, trace.world - 1);
  trace.config = ParseRunConfig(root.At("config"));
}

void ParseLine(const JsonValue& root, Trace& trace) {
  switch (root.At("record").OneOf({"step", "phase", "end"})) {
    case 0:
      trace.steps.push_back(
          ParseStep(root, trace.steps.empty() ? std::nullopt : std::optional(trace.steps.back().step + 1)));
      break;
    case 1:
      root.AllowOnly({"record", "step", "phase"});
      root.At("step").Int(0);
      root.At("phase").OneOf({"forward", "backward", "reduce", "step"});
      break;
    default: {
      root.AllowOnly({"record", "steps"});
      const auto num_steps = static_cast<int64_t>(trace.steps.size());
      root.At("steps").Int(num_steps, num_steps);
      trace.complete = true;
    }
  }
}

}  // namespace

std::string_view Name(TensorKind kind) {
  constexpr std::string_view kNames[] = {"gradient", "moment", "second_moment", "master", "weight"};
  return kNames[static_cast<int>(kind)];
}

TraceWriter::TraceWriter(const std::filesystem::path& out_dir, std::string_view engine, int64_t rank,
                         const RunConfig& config) {
  const std::filesystem::path rank_dir = out_dir / ("rank" + std::to_string(rank));
  std::error_code error;
  std::filesystem::create_directories(rank_dir, error);
  path_ = rank_dir / "trace.jsonl";
  file_.open(path_, std::ios::binary | std::ios::trunc);
  if (error || !file_) Fail(ErrorCode::kEnvironment, path_.string() + ": cannot be written");
  Line("{\"record\": \"header\", \"protocol\": 1, \"engine\": " + JsonQuote(engine) +
       ", \"rank\": " + std::to_string(rank) + ", \"world\": " + std::to_string(config.world_size()) +
       ", \"config\": " + ToJson(config) + "}");
}

void TraceWriter::Phase(int64_t step, std::string_view phase) {
  Line("{\"record\": \"phase\", \"step\": " + std::to_string(step) + ", \"phase\": " + JsonQuote(phase) + "}");
}

void TraceWriter::Step(const StepRecord& record) { Line(ToJson(record)); }

void TraceWriter::End(int64_t steps) { Line("{\"record\": \"end\", \"steps\": " + std::to_string(steps) + "}"); }

void TraceWriter::Line(const std::string& json) {
  file_ << json << '\n';
  file_.flush();
  if (!file_) Fail(ErrorCode::kEnvironment, path_.string() + ": cannot be written");
}

Trace ParseTrace(std::string_view text, std::string_view where) {
  Trace trace;
  int64_t line_number = 0;
  while (true) {
    const size_t newline = text.find('\n');
    if (newline == std::string_view::npos) break;  // the rest is a line that was never finished
    ++line_number;
    const std::string line_where = std::string(where) + ":" + std::to_string(line_number);
    if (trace.complete) Fail(ErrorCode::kInvalidArgument, line_where + ": a line after the end record");
    const JsonValue root = JsonValue::Parse(text.substr(0, newline), line_where);
    if (line_number == 1) {
      ParseHeader(root, trace);
    } else {
      ParseLine(root, trace);
    }
    text.remove_prefix(newline + 1);
  }
  if (line_number == 0) Fail(ErrorCode::kInvalidArgument, std::string(where) + ": has no complete line");
  return trace;
}

std::string DumpName(int64_t rank, int64_t step) {
  char name[48];
  std::snprintf(name, sizeof(name), "tensors-%06lld.safetensors", static_cast<long long>(step));
  return "rank" + std::to_string(rank) + "/" + name;
}

Trace ReadTrace(const std::filesystem::path& out_dir, int64_t rank) {
  const std::string name = "rank" + std::to_string(rank) + "/trace.jsonl";
  Trace trace = ParseTrace(ReadFileOf(out_dir, name, kMaxTraceBytes), name);
  if (trace.rank != rank) {
    Fail(ErrorCode::kInvalidArgument,
         name + ":1: rank is " + std::to_string(trace.rank) + "; allowed: " + std::to_string(rank));
  }
  return trace;
}

Certificate ParseCertificate(std::string_view json, std::string_view where) {
  const JsonValue root = JsonValue::Parse(json, where);
  root.AllowOnly({"quantities", "liveness"});
  Certificate certificate;
  const JsonValue quantities = root.At("quantities");
  for (const std::string& name : quantities.Keys()) {
    const JsonValue entry = quantities.At(name);
    entry.AllowOnly({"max", "where"});
    certificate.quantities[name] = {entry.At("max").Number(), entry.At("where").String()};
  }
  const JsonValue liveness = root.At("liveness");
  for (size_t i = 0; i < liveness.Size(); ++i) {
    const JsonValue entry = liveness[i];
    entry.AllowOnly({"tensor", "nonzero_gradient_share", "moving_weight_share"});
    certificate.liveness.push_back({entry.At("tensor").String(), entry.At("nonzero_gradient_share").Number(),
                                    entry.At("moving_weight_share").Number()});
  }
  return certificate;
}

std::string ToJson(const Certificate& certificate) {
  std::string json = "{\"quantities\": {";
  for (const auto& [name, quantity] : certificate.quantities) {
    if (!json.ends_with('{')) json += ",";
    json += "\n  " + JsonQuote(name) + ": {\"max\": " + JsonNumber(quantity.max) +
            ", \"where\": " + JsonQuote(quantity.where) + "}";
  }
  json += "},\n \"liveness\": [";
  for (const Certificate::Liveness& entry : certificate.liveness) {
    if (!json.ends_with('[')) json += ",";
    json += "\n  {\"tensor\": " + JsonQuote(entry.tensor) +
            ", \"nonzero_gradient_share\": " + JsonNumber(entry.nonzero_gradient_share) +
            ", \"moving_weight_share\": " + JsonNumber(entry.moving_weight_share) + "}";
  }
  return json + "]}\n";
}

}  // namespace plumbline::contract
