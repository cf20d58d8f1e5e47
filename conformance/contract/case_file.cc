// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/case_file.h"

#include <set>

#include "conformance/contract/case_tensors.h"
#include "conformance/contract/error.h"
#include "conformance/contract/file_io.h"
#include "conformance/contract/strict_json.h"
#include "conformance/contract/tensor_file.h"

namespace plumbline::contract {
namespace {

constexpr std::string_view kPerturbationNames[] = {"gradient", "moment", "master", "weight", "counter"};
constexpr int64_t kMaxSteps = 1'000'000;
constexpr double kMaxTimeoutSeconds = 86'400;

ExactSpec ParseModel(const JsonValue& model) {
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
  Validate(spec);
  return spec;
}

std::string ToJson(const ExactSpec& spec) {
  const auto field = [](const char* name, int64_t value) {
    return "\"" + std::string(name) + "\": " + std::to_string(value) + ", ";
  };
  return "{" + field("layers", spec.layers) + field("width", spec.width) + field("heads", spec.heads) +
         field("kv_heads", spec.kv_heads) + field("positions", spec.positions) + field("hidden", spec.hidden) +
         field("vocab", spec.vocab) + field("weight_bound", spec.weight_bound) + field("fold_bound", spec.fold_bound) +
         field("gradient_fold_bound", spec.gradient_fold_bound) + "\"dropout\": " + (spec.dropout ? "true" : "false") +
         "}";
}

bool HasMoment(const Case& spec) { return spec.config.optimizer == OptimizerKind::kModularMomentum; }

// Checks that the perturbation names an element of a parameter.
void CheckTarget(const JsonValue& value, const Perturbation& perturbation, const ExactSpec& model) {
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
  perturbation.step = value.At("step").Int(0, spec.steps - 1);
  perturbation.delta = value.At("delta").Int(-1'000'000, 1'000'000);
  if (perturbation.kind == Perturbation::Kind::kCounter) {
    if (value.Find("tensor") || value.Find("index")) value.Reject("no tensor and no index with kind counter");
    return perturbation;
  }
  if (perturbation.kind == Perturbation::Kind::kMoment && !HasMoment(spec)) {
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
  const HostTensor& tensor = DemandTensor(file, name, dtype, {parameter.rows, parameter.cols}, file_name);
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

void CheckStateStep(const TensorFile& state) {
  const auto step = state.metadata.find("step");
  if (step != state.metadata.end() && step->second == "0") return;
  Fail(ErrorCode::kInvalidArgument, std::string(kStateName) + ": metadata step is " +
                                        (step == state.metadata.end() ? "missing" : JsonQuote(step->second)) +
                                        "; allowed: \"0\"");
}

std::vector<ParameterState> ReadState(const std::filesystem::path& case_dir, const CaseData& data) {
  const ExactSpec& model = data.spec.model;
  const TensorFile weights = ReadTensorFile(case_dir / kWeightsName);
  const TensorFile state = ReadTensorFile(case_dir / kStateName);
  CheckStateStep(state);
  std::vector<ParameterState> values;
  std::set<std::string> weight_names, state_names;
  for (const ParameterSpec& parameter : data.parameters) {
    ParameterState& entry = values.emplace_back();
    entry.weight =
        Take(weights, parameter.name, DType::kF32, parameter, -model.weight_bound, model.weight_bound, kWeightsName);
    weight_names.insert(parameter.name);
    const std::string master = "master/" + parameter.name;
    entry.master = Take(state, master, DType::kI64, parameter, 0, model.master_modulus() - 1, kStateName);
    state_names.insert(master);
    if (!HasMoment(data.spec)) continue;
    const std::string moment = "moment/" + parameter.name;
    entry.moment = Take(state, moment, DType::kI64, parameter, -kMomentBound, kMomentBound, kStateName);
    state_names.insert(moment);
  }
  AllowOnlyTensors(weights, weight_names, kWeightsName);
  AllowOnlyTensors(state, state_names, kStateName);
  return values;
}

void WriteState(const std::filesystem::path& case_dir, const CaseData& data) {
  TensorFile weights;
  TensorFile state{{}, {{"step", "0"}}};
  for (size_t i = 0; i < data.parameters.size(); ++i) {
    const ParameterSpec& parameter = data.parameters[i];
    const ParameterState& entry = data.state[i];
    const std::vector<int64_t> shape = {parameter.rows, parameter.cols};
    const std::vector<float> weight(entry.weight.begin(), entry.weight.end());
    weights.tensors.push_back(MakeF32(parameter.name, shape, weight));
    state.tensors.push_back(MakeI64("master/" + parameter.name, shape, entry.master));
    Check(entry.moment.empty() != HasMoment(data.spec), "a state has moments exactly with ModularMomentum");
    if (HasMoment(data.spec)) state.tensors.push_back(MakeI64("moment/" + parameter.name, shape, entry.moment));
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
  demand("T", data.batches.positions, data.spec.model.positions, "model.positions");
}

}  // namespace

std::string_view Name(Perturbation::Kind kind) { return kPerturbationNames[static_cast<int>(kind)]; }

Case ParseCase(std::string_view json, std::string_view where) {
  const JsonValue root = JsonValue::Parse(json, where, JsonValue::Comments::kAllowed);
  root.AllowOnly({"protocol", "id", "family", "model", "config", "seed", "steps", "timeout_s", "dump_steps",
                  "perturbation", "phase_marks"});
  root.At("protocol").Int(1, 1);
  root.At("family").OneOf({"exact"});
  Case spec;
  spec.id = root.At("id").String();
  spec.model = ParseModel(root.At("model"));
  spec.config = ParseRunConfig(root.At("config"));
  spec.seed = root.At("seed").UInt64();
  spec.steps = root.At("steps").Int(1, kMaxSteps);
  spec.timeout_s = root.At("timeout_s").Number();
  if (!(spec.timeout_s > 0 && spec.timeout_s <= kMaxTimeoutSeconds)) {
    root.At("timeout_s").Reject("seconds above 0, at most 86400");
  }
  if (const auto dumps = root.Find("dump_steps")) {
    for (size_t i = 0; i < dumps->Size(); ++i) spec.dump_steps.push_back((*dumps)[i].Int(0, spec.steps - 1));
  }
  if (const auto value = root.Find("perturbation")) {
    spec.perturbation = ParsePerturbation(*value, spec);
  }
  if (const auto marks = root.Find("phase_marks")) spec.phase_marks = marks->Bool();
  return spec;
}

std::string ToJson(const Case& spec) {
  std::string json = "{\"protocol\": 1,\n \"id\": " + JsonQuote(spec.id) +
                     ",\n \"family\": \"exact\",\n \"model\": " + ToJson(spec.model) +
                     ",\n \"config\": " + ToJson(spec.config) + ",\n \"seed\": " + std::to_string(spec.seed) +
                     ", \"steps\": " + std::to_string(spec.steps) + ", \"timeout_s\": " + JsonNumber(spec.timeout_s) +
                     ",\n \"dump_steps\": [";
  for (size_t i = 0; i < spec.dump_steps.size(); ++i) json += (i ? ", " : "") + std::to_string(spec.dump_steps[i]);
  json += "]";
  if (spec.perturbation) json += ",\n \"perturbation\": " + ToJson(*spec.perturbation);
  return json + ",\n \"phase_marks\": " + (spec.phase_marks ? "true" : "false") + "}\n";
}

CaseData ReadCase(const std::filesystem::path& case_dir) {
  CaseData data;
  data.spec = ParseCase(ReadFile(case_dir / "case.json", uint64_t{16} << 20), "case.json");
  data.parameters = Parameters(data.spec.model);
  data.batches = ReadBatches(case_dir / "batches.safetensors", data.spec.model.vocab);
  CheckBatches(data);
  data.state = ReadState(case_dir, data);
  return data;
}

void WriteCase(const std::filesystem::path& case_dir, const CaseData& data) {
  Check(data.state.size() == data.parameters.size(), "a case has a state for each parameter");
  WriteState(case_dir, data);
  WriteBatches(case_dir / "batches.safetensors", data.batches);
  WriteFile(case_dir / "case.json", ToJson(data.spec));
}

}  // namespace plumbline::contract
