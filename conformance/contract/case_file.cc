// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/case_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "conformance/contract/case_tensors.h"
#include "conformance/contract/error.h"
#include "conformance/contract/file_io.h"
#include "conformance/contract/idle_groups.h"
#include "conformance/contract/strict_json.h"
#include "conformance/contract/tensor_file.h"

namespace plumbline::contract {
namespace {

constexpr std::string_view kPerturbationNames[] = {"gradient", "moment", "master", "weight", "counter"};
constexpr int64_t kMaxSteps = 1'000'000;
constexpr int64_t kMaxFirstStep = 1'000'000'000;
constexpr double kMaxTimeoutSeconds = 86'400;
// Of updates and norms in a state, to which a run adds its steps.
constexpr int64_t kMaxStateCount = int64_t{1} << 40;

ExactSpec ParseExact(const JsonValue& model) {
  model.AllowOnly({"layers", "width", "heads", "kv_heads", "positions", "hidden", "vocab", "weight_bound", "fold_bound",
                   "gradient_fold_bound", "dropout"});
  ExactSpec spec;
  spec.layers = model.At("layers").Int();
  spec.width = model.At("width").Int();
  spec.heads = model.At("heads").Int();
  spec.kv_heads = model.At("kv_heads").Int();
  spec.positions = model.At("positions").Int();
  spec.hidden = model.At("hidden").Int();
  spec.vocab = model.At("vocab").Int();
  spec.weight_bound = model.At("weight_bound").Int();
  spec.fold_bound = model.At("fold_bound").Int();
  spec.gradient_fold_bound = model.At("gradient_fold_bound").Int();
  spec.dropout = model.At("dropout").Bool();
  return spec;
}

constexpr std::string_view kRealKeys[] = {"layers", "width",   "heads",        "positions",         "hidden", "vocab",
                                          "dropout", "norm_epsilon", "initializer_range", "unused", "frozen"};

// What the real families have in common; `own` are the keys of one of them.
void ParseReal(const JsonValue& model, std::vector<std::string_view> own, RealSpec& spec) {
  own.insert(own.begin(), std::begin(kRealKeys), std::end(kRealKeys));
  model.AllowOnly(own);
  spec.layers = model.At("layers").Int();
  spec.width = model.At("width").Int();
  spec.heads = model.At("heads").Int();
  spec.positions = model.At("positions").Int();
  spec.hidden = model.At("hidden").Int();
  spec.vocab = model.At("vocab").Int();
  if (const auto dropout = model.Find("dropout")) spec.dropout = dropout->Number();
  if (const auto epsilon = model.Find("norm_epsilon")) spec.norm_epsilon = epsilon->Number();
  if (const auto range = model.Find("initializer_range")) spec.initializer_range = range->Number();
  if (const auto unused = model.Find("unused")) spec.unused = unused->Bool();
  if (const auto frozen = model.Find("frozen")) {
    for (size_t i = 0; i < frozen->Size(); ++i) spec.frozen.push_back((*frozen)[i].String());
  }
}

Gpt2Spec ParseGpt2(const JsonValue& model) {
  Gpt2Spec spec;
  ParseReal(model, {"tied_head"}, spec);
  if (const auto tied = model.Find("tied_head")) spec.tied_head = tied->Bool();
  return spec;
}

LlamaSpec ParseLlama(const JsonValue& model) {
  LlamaSpec spec;
  ParseReal(model, {"kv_heads", "rope_theta", "unequal_lengths"}, spec);
  spec.kv_heads = model.At("kv_heads").Int();
  if (const auto theta = model.Find("rope_theta")) spec.rope_theta = theta->Number();
  if (const auto unequal = model.Find("unequal_lengths")) spec.unequal_lengths = unequal->Bool();
  return spec;
}

ModelSpec ParseFamily(Family family, const JsonValue& model) {
  switch (family) {
    case Family::kExact:
      return ParseExact(model);
    case Family::kGpt2:
      return ParseGpt2(model);
    case Family::kLlama:
      return ParseLlama(model);
  }
  Check(false, "a family has a model");
  return {};
}

ModelSpec ParseModel(const JsonValue& root) {
  const auto family = static_cast<Family>(root.At("family").OneOf(kFamilyNames));
  const ModelSpec spec = ParseFamily(family, root.At("model"));
  Validate(spec);
  return spec;
}

std::string Field(const char* name, int64_t value) {
  return "\"" + std::string(name) + "\": " + std::to_string(value) + ", ";
}

std::string ToJson(const ExactSpec& spec) {
  return "{" + Field("layers", spec.layers) + Field("width", spec.width) + Field("heads", spec.heads) +
         Field("kv_heads", spec.kv_heads) + Field("positions", spec.positions) + Field("hidden", spec.hidden) +
         Field("vocab", spec.vocab) + Field("weight_bound", spec.weight_bound) + Field("fold_bound", spec.fold_bound) +
         Field("gradient_fold_bound", spec.gradient_fold_bound) + "\"dropout\": " + (spec.dropout ? "true" : "false") +
         "}";
}

std::string Bool(bool value) { return value ? "true" : "false"; }

std::string SizesJson(const RealSpec& spec) {
  return Field("layers", spec.layers) + Field("width", spec.width) + Field("heads", spec.heads) +
         Field("positions", spec.positions) + Field("hidden", spec.hidden) + Field("vocab", spec.vocab) +
         "\"dropout\": " + JsonNumber(spec.dropout);
}

std::string RestJson(const RealSpec& spec) {
  std::string frozen;
  for (const std::string& name : spec.frozen) frozen += (frozen.empty() ? "" : ", ") + JsonQuote(name);
  return "\"norm_epsilon\": " + JsonNumber(spec.norm_epsilon) +
         ", \"initializer_range\": " + JsonNumber(spec.initializer_range) + ", \"unused\": " + Bool(spec.unused) +
         ", \"frozen\": [" + frozen + "]";
}

std::string ToJson(const Gpt2Spec& spec) {
  return "{" + SizesJson(spec) + ", \"tied_head\": " + Bool(spec.tied_head) + ", " + RestJson(spec) + "}";
}

std::string ToJson(const LlamaSpec& spec) {
  return "{" + SizesJson(spec) + ", " + Field("kv_heads", spec.kv_heads) +
         "\"rope_theta\": " + JsonNumber(spec.rope_theta) +
         ", \"unequal_lengths\": " + Bool(spec.unequal_lengths) + ", " + RestJson(spec) + "}";
}

std::string ToJson(const ModelSpec& spec) {
  switch (spec.kind()) {
    case Family::kExact:
      return ToJson(spec.exact());
    case Family::kGpt2:
      return ToJson(spec.gpt2());
    case Family::kLlama:
      return ToJson(spec.llama());
  }
  Check(false, "a family has a model");
  return {};
}

// Checks that the perturbation names an element of a parameter.
void CheckTarget(const JsonValue& value, const Perturbation& perturbation, const ModelSpec& model) {
  for (const ParameterSpec& parameter : Parameters(model)) {
    if (parameter.name != perturbation.tensor) continue;
    value.At("index").Int(0, parameter.numel() - 1);
    return;
  }
  value.At("tensor").Reject("a parameter's name");
}

Perturbation ParsePerturbation(const JsonValue& value, const Case& spec) {
  value.AllowOnly({"kind", "tensor", "index", "step", "delta"});
  Perturbation perturbation;
  perturbation.kind =
      static_cast<Perturbation::Kind>(value.At("kind").OneOf({"gradient", "moment", "master", "weight", "counter"}));
  if (!spec.model.is_exact()) value.Reject("no perturbation in family " + std::string(spec.model.family()));
  perturbation.step = value.At("step").Int(spec.first_step, spec.first_step + spec.steps - 1);
  perturbation.delta = value.At("delta").Int(-1'000'000, 1'000'000);
  if (perturbation.kind == Perturbation::Kind::kCounter) {
    if (value.Find("tensor") || value.Find("index")) value.Reject("no tensor and no index with kind counter");
    return perturbation;
  }
  if (perturbation.kind == Perturbation::Kind::kMoment && !HasMoment(spec.config)) {
    value.At("kind").Reject("another kind, as " + std::string(Name(spec.config.optimizer)) + " has no moment");
  }
  perturbation.tensor = value.At("tensor").String();
  perturbation.index = value.At("index").Int(0);
  CheckTarget(value, perturbation, spec.model);
  return perturbation;
}

std::string ToJson(const Perturbation& perturbation) {
  std::string json = "{\"kind\": " + JsonQuote(Name(perturbation.kind));
  if (perturbation.kind != Perturbation::Kind::kCounter) {
    json += ", \"tensor\": " + JsonQuote(perturbation.tensor) + ", \"index\": " + std::to_string(perturbation.index);
  }
  return json + ", \"step\": " + std::to_string(perturbation.step) +
         ", \"delta\": " + std::to_string(perturbation.delta) + "}";
}

// A file's values of one parameter, checked for type, shape and range.
std::vector<int64_t> Take(const TensorFile& file, const std::string& name, DType dtype, const ParameterSpec& parameter,
                          int64_t min, int64_t max, const char* file_name) {
  const HostTensor& tensor = DemandTensor(file, name, dtype, parameter.shape(), file_name);
  std::vector<int64_t> values = ToInt64(tensor);
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] >= min && values[i] <= max) continue;
    Fail(ErrorCode::kInvalidArgument, std::string(file_name) + ": " + name + " element " + std::to_string(i) + " is " +
                                          std::to_string(values[i]) + "; allowed: " + std::to_string(min) + " to " +
                                          std::to_string(max));
  }
  return values;
}

constexpr int64_t kMomentBound = 14;

constexpr const char* kWeightsName = "weights.safetensors";
constexpr const char* kStateName = "state.safetensors";

// A number in the metadata of the state, which must be there, be one and nothing else, and be good.
template <typename Number, typename IsGood>
Number MetadataNumber(const TensorFile& state, const std::string& key, const IsGood& is_good, const char* allowed) {
  const auto entry = state.metadata.find(key);
  const std::string text = entry == state.metadata.end() ? "" : entry->second;
  Number number = -1;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec == std::errc() && parsed.ptr == text.data() + text.size() && is_good(number)) return number;
  Fail(ErrorCode::kInvalidArgument, std::string(kStateName) + ": metadata " + key + " is " +
                                        (entry == state.metadata.end() ? "missing" : JsonQuote(text)) +
                                        "; allowed: " + allowed);
}

int64_t MetadataCount(const TensorFile& state, const std::string& key) {
  return MetadataNumber<int64_t>(
      state, key, [](int64_t count) { return count >= 0 && count <= kMaxStateCount; },
      "a count from 0 to 1099511627776 in decimal digits");
}

void CheckStateStep(const TensorFile& state, int64_t first_step) {
  const int64_t step = MetadataCount(state, "step");
  if (step == first_step) return;
  Fail(ErrorCode::kInvalidArgument, std::string(kStateName) + ": metadata step is \"" + std::to_string(step) +
                                        "\"; allowed: \"" + std::to_string(first_step) + "\", as first_step says");
}

void ReadExactState(const TensorFile& weights, const TensorFile& state, CaseData& data) {
  const ExactSpec& model = data.spec.model.exact();
  std::set<std::string> weight_names, state_names;
  for (const ParameterSpec& parameter : data.parameters) {
    ParameterState& entry = data.state.emplace_back();
    entry.weight =
        Take(weights, parameter.name, DType::kF32, parameter, -model.weight_bound, model.weight_bound, kWeightsName);
    weight_names.insert(parameter.name);
    const std::string master = "master/" + parameter.name;
    entry.master = Take(state, master, DType::kI64, parameter, 0, model.master_modulus() - 1, kStateName);
    state_names.insert(master);
    if (!HasMoment(data.spec.config)) continue;
    const std::string moment = "moment/" + parameter.name;
    entry.moment = Take(state, moment, DType::kI64, parameter, -kMomentBound, kMomentBound, kStateName);
    state_names.insert(moment);
  }
  AllowOnlyTensors(weights, weight_names, kWeightsName);
  AllowOnlyTensors(state, state_names, kStateName);
}

// Values of one parameter; NaN and infinities too: what an engine does about them is for the harness to ask.
std::vector<float> TakeReal(const TensorFile& file, const std::string& name, const ParameterSpec& parameter,
                            const char* file_name, std::set<std::string>& names) {
  const HostTensor& tensor = DemandTensor(file, name, DType::kF32, parameter.shape(), file_name);
  names.insert(name);
  std::vector<float> values(static_cast<size_t>(parameter.numel()));
  std::copy_n(tensor.data.data(), tensor.data.size(), reinterpret_cast<std::byte*>(values.data()));
  return values;
}

NormHistory ReadNormHistory(const TensorFile& state) {
  // Norms of 2^40 elements of fp32 are below 4e44.
  const double mean = MetadataNumber<double>(
      state, "norm_mean", [](double value) { return value >= 0 && value <= 1e50; }, "a number from 0 to 1e50");
  const double variance = MetadataNumber<double>(
      state, "norm_variance", [](double value) { return value >= 0 && value <= 1e100; }, "a number from 0 to 1e100");
  return {MetadataCount(state, "norm_count"), mean, variance};
}

LossScaler ReadLossScaler(const TensorFile& state) {
  const auto is_scale = [](double value) {
    int exponent = 0;
    return value >= 1 && value <= 0x1p126 && std::frexp(value, &exponent) == 0.5;
  };
  LossScaler scaler;
  scaler.scale = MetadataNumber<double>(state, "loss_scale", is_scale, "a power of two from 1 to 2^126");
  scaler.steps = MetadataCount(state, "loss_scale_steps");
  scaler.last_overflow = MetadataNumber<int64_t>(
      state, "loss_scale_last_overflow", [&](int64_t value) { return value >= -1 && value < scaler.steps; },
      "an integer from -1 to below loss_scale_steps");
  scaler.hysteresis = MetadataNumber<int64_t>(
      state, "loss_scale_hysteresis", [](int64_t value) { return value >= 1 && value <= kMaxStateCount; },
      "an integer from 1 to 1099511627776");
  return scaler;
}

void ReadRealState(const TensorFile& weights, const TensorFile& state, CaseData& data) {
  data.num_updates = MetadataCount(state, "updates");
  if (HasNormHistory(data.spec.config)) data.norm_history = ReadNormHistory(state);
  if (HasDynamicLossScale(data.spec.config)) data.loss_scaler = ReadLossScaler(state);
  std::set<std::string> weight_names, state_names;
  for (const ParameterSpec& parameter : data.parameters) {
    RealParameterState& entry = data.real_state.emplace_back();
    entry.master = TakeReal(weights, parameter.name, parameter, kWeightsName, weight_names);
    if (parameter.frozen) continue;
    if (HasMoment(data.spec.config)) {
      entry.moment = TakeReal(state, "moment/" + parameter.name, parameter, kStateName, state_names);
    }
    if (HasSecondMoment(data.spec.config)) {
      entry.second_moment = TakeReal(state, "second_moment/" + parameter.name, parameter, kStateName, state_names);
    }
  }
  AllowOnlyTensors(weights, weight_names, kWeightsName);
  AllowOnlyTensors(state, state_names, kStateName);
}

void ReadState(const std::filesystem::path& case_dir, CaseData& data) {
  const TensorFile weights = ReadTensorFile(case_dir / kWeightsName);
  const TensorFile state = ReadTensorFile(case_dir / kStateName);
  CheckStateStep(state, data.spec.first_step);
  if (data.spec.model.is_exact()) {
    ReadExactState(weights, state, data);
  } else {
    ReadRealState(weights, state, data);
  }
}

void AddExactState(const CaseData& data, TensorFile& weights, TensorFile& state) {
  Check(data.state.size() == data.parameters.size(), "a case has a state for each parameter");
  for (size_t i = 0; i < data.parameters.size(); ++i) {
    const ParameterSpec& parameter = data.parameters[i];
    const ParameterState& entry = data.state[i];
    const std::vector<float> weight(entry.weight.begin(), entry.weight.end());
    weights.tensors.push_back(MakeF32(parameter.name, parameter.shape(), weight));
    state.tensors.push_back(MakeI64("master/" + parameter.name, parameter.shape(), entry.master));
    Check(entry.moment.empty() != HasMoment(data.spec.config), "a state has moments exactly with ModularMomentum");
    if (entry.moment.empty()) continue;
    state.tensors.push_back(MakeI64("moment/" + parameter.name, parameter.shape(), entry.moment));
  }
}

void AddRealState(const CaseData& data, TensorFile& weights, TensorFile& state) {
  Check(data.real_state.size() == data.parameters.size(), "a case has a state for each parameter");
  state.metadata["updates"] = std::to_string(data.num_updates);
  if (HasNormHistory(data.spec.config)) {
    state.metadata["norm_count"] = std::to_string(data.norm_history.count);
    state.metadata["norm_mean"] = JsonNumber(data.norm_history.mean);
    state.metadata["norm_variance"] = JsonNumber(data.norm_history.variance);
  }
  if (HasDynamicLossScale(data.spec.config)) {
    state.metadata["loss_scale"] = JsonNumber(data.loss_scaler.scale);
    state.metadata["loss_scale_steps"] = std::to_string(data.loss_scaler.steps);
    state.metadata["loss_scale_last_overflow"] = std::to_string(data.loss_scaler.last_overflow);
    state.metadata["loss_scale_hysteresis"] = std::to_string(data.loss_scaler.hysteresis);
  }
  for (size_t i = 0; i < data.parameters.size(); ++i) {
    const ParameterSpec& parameter = data.parameters[i];
    const RealParameterState& entry = data.real_state[i];
    weights.tensors.push_back(MakeF32(parameter.name, parameter.shape(), entry.master));
    const auto add = [&](const char* kind, bool expected, const std::vector<float>& values) {
      Check(values.empty() != (expected && !parameter.frozen), "a state has the moments that the optimizer keeps");
      if (!values.empty()) state.tensors.push_back(MakeF32(kind + parameter.name, parameter.shape(), values));
    };
    add("moment/", HasMoment(data.spec.config), entry.moment);
    add("second_moment/", HasSecondMoment(data.spec.config), entry.second_moment);
  }
}

void WriteState(const std::filesystem::path& case_dir, const CaseData& data) {
  TensorFile weights;
  TensorFile state{{}, {{"step", std::to_string(data.spec.first_step)}}};
  if (data.spec.model.is_exact()) {
    AddExactState(data, weights, state);
  } else {
    AddRealState(data, weights, state);
  }
  WriteTensorFile(case_dir / kWeightsName, weights);
  WriteTensorFile(case_dir / kStateName, state);
}

void CheckBatches(const CaseData& data) {
  const auto demand = [](const char* what, int64_t value, int64_t expected, const char* field) {
    if (value == expected) return;
    Fail(ErrorCode::kInvalidArgument, std::string("batches.safetensors: ") + what + " is " + std::to_string(value) +
                                          "; allowed: " + std::to_string(expected) + ", as " + field + " says");
  };
  demand("steps", data.batches.steps, data.spec.steps, "steps");
  demand("B", data.batches.batch, data.spec.config.train_batch_size, "config.train_batch_size");
  demand("T", data.batches.positions, data.spec.model.positions(), "model.positions");
}

constexpr OptimizerKind kOptimizersOfExact[] = {OptimizerKind::kModularMomentum, OptimizerKind::kModularSgd};
constexpr OptimizerKind kOptimizersOfReal[] = {OptimizerKind::kAdamW, OptimizerKind::kSgd, OptimizerKind::kAdam,
                                               OptimizerKind::kLion, OptimizerKind::kLamb};

using All = std::span<const OptimizerKind>;

// Before the config is parsed, which by itself does not know the family: where the name is wrong, only those of the
// family are named.
void CheckOptimizer(const JsonValue& root, const ModelSpec& model) {
  const std::optional<JsonValue> optimizer = root.At("config").Find("optimizer");
  const std::optional<JsonValue> type = optimizer ? optimizer->Find("type") : std::nullopt;
  if (!type) return;
  std::string allowed;
  for (OptimizerKind kind : model.is_exact() ? All(kOptimizersOfExact) : All(kOptimizersOfReal)) {
    if (type->IsString() && type->String() == Name(kind)) return;
    allowed += (allowed.empty() ? "" : ", ") + std::string(Name(kind));
  }
  type->Reject(allowed + " in family " + std::string(model.family()));
}

void DemandStageOfEachLayer(const JsonValue& root, const Case& spec) {
  const int64_t layers = spec.model.layers();
  const auto given = static_cast<int64_t>(spec.config.layer_stages.size());
  if (given == 0 || given == layers) return;
  Fail(ErrorCode::kInvalidArgument, root.At("config").At("zero_optimization").At("layer_stages").Path() + " has " +
                                        std::to_string(given) + " entries; allowed: one for each of the " +
                                        std::to_string(layers) + " layers of the model");
}

void DemandParameters(const JsonValue& root, const Case& spec) {
  for (const size_t idle : IdleGroups(spec.config.groups, Parameters(spec.model))) {
    root.At("config").At("param_groups")[idle].At("match").Reject(
        "a pattern that fits a parameter of the model which no entry before it fits");
  }
}

double ParseTimeout(const JsonValue& timeout) {
  const double seconds = timeout.IsNumber() ? timeout.Number() : 0;
  if (!(seconds > 0 && seconds <= kMaxTimeoutSeconds)) timeout.Reject("seconds above 0, at most 86400");
  return seconds;
}

std::vector<int64_t> ParseSteps(const JsonValue& root, std::string_view key, const Case& spec) {
  std::vector<int64_t> steps;
  const auto array = root.Find(key);
  for (size_t i = 0; array && i < array->Size(); ++i) {
    steps.push_back((*array)[i].Int(spec.first_step, spec.first_step + spec.steps - 1));
  }
  return steps;
}

std::string StepsJson(const char* key, const std::vector<int64_t>& steps) {
  std::string json;
  for (int64_t step : steps) json += (json.empty() ? "" : ", ") + std::to_string(step);
  return ",\n \"" + std::string(key) + "\": [" + json + "]";
}

}  // namespace

bool HasMoment(const RunConfig& config) {
  switch (config.optimizer) {
    case OptimizerKind::kModularMomentum:
    case OptimizerKind::kAdamW:
    case OptimizerKind::kAdam:
    case OptimizerKind::kLion:
    case OptimizerKind::kLamb:
      return true;
    case OptimizerKind::kModularSgd:
      return false;
    case OptimizerKind::kSgd:
      return config.params.momentum > 0;
  }
  return false;
}

bool HasSecondMoment(const RunConfig& config) {
  return config.optimizer == OptimizerKind::kAdamW || config.optimizer == OptimizerKind::kAdam ||
         config.optimizer == OptimizerKind::kLamb;
}

bool HasNormHistory(const RunConfig& config) {
  return config.adaptive_clipping.kind == AdaptiveClipping::Kind::kHistory;
}

std::string_view Name(Perturbation::Kind kind) { return kPerturbationNames[static_cast<int>(kind)]; }

Case ParseCase(std::string_view json, std::string_view where) {
  const JsonValue root = JsonValue::Parse(json, where, JsonValue::Comments::kAllowed);
  root.AllowOnly({"protocol", "id", "family", "model", "config", "seed", "first_step", "steps", "timeout_s",
                  "dump_steps", "save_steps", "resume", "perturbation", "phase_marks"});
  root.At("protocol").Int(1, 1);
  Case spec;
  spec.id = root.At("id").String();
  spec.model = ParseModel(root);
  CheckOptimizer(root, spec.model);
  spec.config = ParseRunConfig(root.At("config"), spec.model.width());
  DemandParameters(root, spec);
  DemandStageOfEachLayer(root, spec);
  spec.seed = root.At("seed").UInt64();
  // A run of family exact starts at step 0, or resumes.
  if (const auto first = root.Find("first_step")) {
    spec.first_step = first->Int(0, spec.model.is_exact() ? 0 : kMaxFirstStep);
  }
  spec.steps = root.At("steps").Int(1, kMaxSteps);
  spec.timeout_s = ParseTimeout(root.At("timeout_s"));
  spec.dump_steps = ParseSteps(root, "dump_steps", spec);
  spec.save_steps = ParseSteps(root, "save_steps", spec);
  if (const auto resume = root.Find("resume")) spec.resume = resume->Bool();
  if (const auto value = root.Find("perturbation")) {
    spec.perturbation = ParsePerturbation(*value, spec);
  }
  if (const auto marks = root.Find("phase_marks")) spec.phase_marks = marks->Bool();
  return spec;
}

std::string ToJson(const Case& spec) {
  std::string json = "{\"protocol\": 1,\n \"id\": " + JsonQuote(spec.id) +
                     ",\n \"family\": " + JsonQuote(spec.model.family()) + ",\n \"model\": " + ToJson(spec.model) +
                     ",\n \"config\": " + ToJson(spec.config) + ",\n \"seed\": " + std::to_string(spec.seed) +
                     ", \"first_step\": " + std::to_string(spec.first_step) +
                     ", \"steps\": " + std::to_string(spec.steps) + ", \"timeout_s\": " + JsonNumber(spec.timeout_s);
  json += StepsJson("dump_steps", spec.dump_steps) + StepsJson("save_steps", spec.save_steps);
  json += std::string(",\n \"resume\": ") + (spec.resume ? "true" : "false");
  if (spec.perturbation) json += ",\n \"perturbation\": " + ToJson(*spec.perturbation);
  return json + ",\n \"phase_marks\": " + (spec.phase_marks ? "true" : "false") + "}\n";
}

CaseData ReadCase(const std::filesystem::path& case_dir) {
  CaseData data;
  data.spec = ParseCase(ReadFile(case_dir / "case.json", uint64_t{16} << 20), "case.json");
  data.parameters = Parameters(data.spec.model);
  data.batches = ReadBatches(case_dir / "batches.safetensors", data.spec.model.vocab(), data.spec.model.has_unequal_lengths());
  data.batches.first_step = data.spec.first_step;
  CheckBatches(data);
  ReadState(case_dir, data);
  return data;
}

void WriteCase(const std::filesystem::path& case_dir, const CaseData& data) {
  WriteState(case_dir, data);
  WriteBatches(case_dir / "batches.safetensors", data.batches);
  WriteFile(case_dir / "case.json", ToJson(data.spec));
}

}  // namespace plumbline::contract
