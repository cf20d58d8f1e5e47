// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/model_spec.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "conformance/contract/error.h"

namespace plumbline::contract {
namespace {

// Keeps every product of sizes far inside int64, so that sizes can be multiplied without further checks.
constexpr int64_t kMaxSize = int64_t{1} << 20;
constexpr int64_t kMaxLayers = 4096;
// Integers up to 2^24 are exact in fp32; folds of larger bounds could not be.
constexpr int64_t kMaxBound = int64_t{1} << 16;

// Real numbers stay where an engine that computes in fp32 is as good as one in fp64.
//   dropout: 1 / (1 - p) keeps five digits of a p that is rounded.
//   norm_epsilon: where a row is zero, backward has the cube of 1 / sqrt(epsilon), 1e30 at most.
//   initializer_range: a gradient is a product of up to seven weights, 1e-35 at least.
//   rope_theta: no angle is larger than its position, and none is lost beside 1.
constexpr double kMaxDropout = 0.99;
constexpr double kMinNormEpsilon = 1e-20;
constexpr double kMinInitializerRange = 1e-5;
constexpr double kMinRopeTheta = 1;
constexpr double kMaxRopeTheta = 1e9;

void DemandRange(const char* field, int64_t value, int64_t min, int64_t max) {
  if (value >= min && value <= max) return;
  Fail(ErrorCode::kInvalidArgument, std::string("model.") + field + " is " + std::to_string(value) +
                                        "; allowed: an integer from " + std::to_string(min) + " to " +
                                        std::to_string(max));
}

// Short, and never rounded to the nearest number that would be allowed.
std::string Shown(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

void DemandDivides(const char* field, int64_t value, const char* by, int64_t divisor) {
  if (value % divisor == 0) return;
  Fail(ErrorCode::kInvalidArgument, std::string("model.") + field + " is " + std::to_string(value) +
                                        "; allowed: a multiple of model." + by + " = " + std::to_string(divisor));
}

void ValidateExact(const ExactSpec& spec) {
  DemandRange("layers", spec.layers, 1, kMaxLayers);
  DemandRange("width", spec.width, 1, kMaxSize);
  DemandRange("heads", spec.heads, 1, kMaxSize);
  DemandRange("kv_heads", spec.kv_heads, 1, kMaxSize);
  DemandRange("positions", spec.positions, 1, kMaxSize);
  DemandRange("hidden", spec.hidden, 1, kMaxSize);
  DemandRange("vocab", spec.vocab, 2, kMaxSize);
  DemandRange("weight_bound", spec.weight_bound, 1, kMaxBound);
  DemandRange("fold_bound", spec.fold_bound, 1, kMaxBound);
  DemandRange("gradient_fold_bound", spec.gradient_fold_bound, 1, kMaxBound);
  DemandDivides("width", spec.width, "heads", spec.heads);
  DemandDivides("heads", spec.heads, "kv_heads", spec.kv_heads);
}

// Collects parameters in canonical order.
class ParameterList {
 public:
  // x W: [in, out], a column makes one output.
  void Matrix(std::string name, int64_t rows, int64_t cols) { Add(std::move(name), rows, cols, UnitShape::kColumns); }
  // A row for each token, position or class.
  void Rows(std::string name, int64_t rows, int64_t cols) { Add(std::move(name), rows, cols, UnitShape::kRows); }
  void Vector(std::string name, int64_t size) { Add(std::move(name), 1, size, UnitShape::kWhole); }
  std::vector<ParameterSpec> Take() { return std::move(parameters_); }

  // What is added from here on is this layer's, and its name begins with what is returned.
  std::string Enter(int64_t layer) {
    layer_ = layer;
    return "layers." + std::to_string(layer) + ".";
  }
  void LeaveLayers() { layer_ = ParameterSpec::kNoLayer; }

 private:
  void Add(std::string name, int64_t rows, int64_t cols, UnitShape units) {
    const auto id = static_cast<int64_t>(parameters_.size());
    parameters_.push_back({std::move(name), rows, cols, id, units == UnitShape::kWhole, false, units, layer_});
  }

  int64_t layer_ = ParameterSpec::kNoLayer;
  std::vector<ParameterSpec> parameters_;
};

std::vector<ParameterSpec> ExactParameters(const ExactSpec& spec) {
  ParameterList list;
  list.Rows("embed.weight", spec.vocab, spec.width);
  list.Rows("pos.weight", spec.positions, spec.width);
  for (int64_t layer = 0; layer < spec.layers; ++layer) {
    const std::string prefix = list.Enter(layer);
    list.Matrix(prefix + "attn.q", spec.width, spec.width);
    list.Matrix(prefix + "attn.k", spec.width, spec.kv_width());
    list.Matrix(prefix + "attn.v", spec.width, spec.kv_width());
    list.Matrix(prefix + "attn.o", spec.width, spec.width);
    list.Matrix(prefix + "mlp.up", spec.width, spec.hidden);
    list.Matrix(prefix + "mlp.down", spec.hidden, spec.width);
  }
  return list.Take();
}

constexpr int64_t kUnusedRows = 3;
constexpr int64_t kUnusedCols = 5;

// The list, with what is frozen of it.
std::vector<ParameterSpec> Freeze(std::vector<ParameterSpec> parameters, const std::vector<std::string>& frozen) {
  for (ParameterSpec& parameter : parameters) {
    parameter.frozen = std::find(frozen.begin(), frozen.end(), parameter.name) != frozen.end();
  }
  return parameters;
}

std::vector<ParameterSpec> Gpt2Parameters(const Gpt2Spec& spec) {
  ParameterList list;
  const auto linear = [&](const std::string& name, int64_t in, int64_t out) {
    list.Matrix(name + ".weight", in, out);
    list.Vector(name + ".bias", out);
  };
  const auto norm = [&](const std::string& name) {
    list.Vector(name + ".weight", spec.width);
    list.Vector(name + ".bias", spec.width);
  };
  list.Rows("embed.weight", spec.vocab, spec.width);
  list.Rows("pos.weight", spec.positions, spec.width);
  for (int64_t layer = 0; layer < spec.layers; ++layer) {
    const std::string prefix = list.Enter(layer);
    norm(prefix + "norm1");
    linear(prefix + "attn.qkv", spec.width, 3 * spec.width);
    linear(prefix + "attn.out", spec.width, spec.width);
    norm(prefix + "norm2");
    linear(prefix + "mlp.up", spec.width, spec.hidden);
    linear(prefix + "mlp.down", spec.hidden, spec.width);
  }
  list.LeaveLayers();
  norm("norm");
  if (!spec.tied_head) list.Rows("head.weight", spec.vocab, spec.width);
  if (spec.unused) list.Rows("unused.weight", kUnusedRows, kUnusedCols);
  return Freeze(list.Take(), spec.frozen);
}

std::vector<ParameterSpec> LlamaParameters(const LlamaSpec& spec) {
  ParameterList list;
  list.Rows("embed.weight", spec.vocab, spec.width);
  for (int64_t layer = 0; layer < spec.layers; ++layer) {
    const std::string prefix = list.Enter(layer);
    list.Vector(prefix + "norm1.weight", spec.width);
    list.Matrix(prefix + "attn.q.weight", spec.width, spec.width);
    list.Matrix(prefix + "attn.k.weight", spec.width, spec.kv_width());
    list.Matrix(prefix + "attn.v.weight", spec.width, spec.kv_width());
    list.Matrix(prefix + "attn.out.weight", spec.width, spec.width);
    list.Vector(prefix + "norm2.weight", spec.width);
    list.Matrix(prefix + "mlp.gate.weight", spec.width, spec.hidden);
    list.Matrix(prefix + "mlp.up.weight", spec.width, spec.hidden);
    list.Matrix(prefix + "mlp.down.weight", spec.hidden, spec.width);
  }
  list.LeaveLayers();
  list.Vector("norm.weight", spec.width);
  list.Rows("head.weight", spec.vocab, spec.width);
  if (spec.unused) list.Rows("unused.weight", kUnusedRows, kUnusedCols);
  return Freeze(list.Take(), spec.frozen);
}

void DemandNumber(const char* field, double value, bool is_allowed, const char* allowed) {
  if (is_allowed) return;
  Fail(ErrorCode::kInvalidArgument,
       std::string("model.") + field + " is " + Shown(value) + "; allowed: a number " + allowed);
}

void ValidateReal(const RealSpec& spec) {
  DemandRange("layers", spec.layers, 1, kMaxLayers);
  DemandRange("width", spec.width, 1, kMaxSize);
  DemandRange("heads", spec.heads, 1, kMaxSize);
  DemandRange("positions", spec.positions, 1, kMaxSize);
  DemandRange("hidden", spec.hidden, 1, kMaxSize);
  DemandRange("vocab", spec.vocab, 2, kMaxSize);
  DemandDivides("width", spec.width, "heads", spec.heads);
  DemandNumber("dropout", spec.dropout, spec.dropout >= 0 && spec.dropout <= kMaxDropout, "from 0 to 0.99");
  DemandNumber("norm_epsilon", spec.norm_epsilon, spec.norm_epsilon >= kMinNormEpsilon && spec.norm_epsilon < 1,
               "from 1e-20 to below 1");
  DemandNumber("initializer_range", spec.initializer_range,
               spec.initializer_range >= kMinInitializerRange && spec.initializer_range < 1, "from 1e-5 to below 1");
}

void ValidateFrozen(const std::vector<std::string>& frozen, const std::vector<ParameterSpec>& parameters) {
  for (size_t i = 0; i < frozen.size(); ++i) {
    const std::string& name = frozen[i];
    const bool known = std::any_of(parameters.begin(), parameters.end(),
                                   [&](const ParameterSpec& parameter) { return parameter.name == name; });
    const bool twice = std::find(frozen.begin() + static_cast<int64_t>(i) + 1, frozen.end(), name) != frozen.end();
    if (known && !twice) continue;
    Fail(ErrorCode::kInvalidArgument, "model.frozen names \"" + name + "\"" + (twice ? " twice" : "") +
                                          "; allowed: each parameter of the model, once");
  }
  if (std::all_of(parameters.begin(), parameters.end(), [](const ParameterSpec& entry) { return entry.frozen; })) {
    Fail(ErrorCode::kInvalidArgument, "model.frozen names every parameter; allowed: at least one is trained");
  }
}

void ValidateLlama(const LlamaSpec& spec) {
  DemandRange("kv_heads", spec.kv_heads, 1, kMaxSize);
  DemandDivides("heads", spec.heads, "kv_heads", spec.kv_heads);
  if (spec.head_width() % 2 != 0) {
    Fail(ErrorCode::kInvalidArgument, "model.width is " + std::to_string(spec.width) +
                                          "; allowed: a multiple of twice model.heads = " + std::to_string(spec.heads) +
                                          ", as positions turn pairs of channels");
  }
  DemandNumber("rope_theta", spec.rope_theta, spec.rope_theta >= kMinRopeTheta && spec.rope_theta <= kMaxRopeTheta,
               "from 1 to 1e9");
}

constexpr const char* kWrongFamily = "a model is asked for what its family has";

}  // namespace

const ExactSpec& ModelSpec::exact() const {
  Check(is_exact(), kWrongFamily);
  return std::get<ExactSpec>(spec_);
}

ExactSpec& ModelSpec::exact() { return const_cast<ExactSpec&>(std::as_const(*this).exact()); }

const Gpt2Spec& ModelSpec::gpt2() const {
  Check(kind() == Family::kGpt2, kWrongFamily);
  return std::get<Gpt2Spec>(spec_);
}

Gpt2Spec& ModelSpec::gpt2() { return const_cast<Gpt2Spec&>(std::as_const(*this).gpt2()); }

const LlamaSpec& ModelSpec::llama() const {
  Check(kind() == Family::kLlama, kWrongFamily);
  return std::get<LlamaSpec>(spec_);
}

LlamaSpec& ModelSpec::llama() { return const_cast<LlamaSpec&>(std::as_const(*this).llama()); }

const RealSpec& ModelSpec::real() const {
  Check(!is_exact(), kWrongFamily);
  if (kind() == Family::kGpt2) return gpt2();
  return llama();
}

RealSpec& ModelSpec::real() { return const_cast<RealSpec&>(std::as_const(*this).real()); }

int64_t ModelSpec::layers() const { return is_exact() ? exact().layers : real().layers; }
int64_t ModelSpec::width() const { return is_exact() ? exact().width : real().width; }

int64_t ModelSpec::positions() const { return is_exact() ? exact().positions : real().positions; }

int64_t ModelSpec::vocab() const { return is_exact() ? exact().vocab : real().vocab; }

int64_t ModelSpec::heads() const { return is_exact() ? exact().heads : real().heads; }

int64_t ModelSpec::kv_heads() const {
  switch (kind()) {
    case Family::kExact:
      return exact().kv_heads;
    case Family::kLlama:
      return llama().kv_heads;
    case Family::kGpt2:
      break;
  }
  return heads();
}

void Validate(const ModelSpec& spec) {
  if (spec.is_exact()) return ValidateExact(spec.exact());
  ValidateReal(spec.real());
  if (spec.kind() == Family::kLlama) ValidateLlama(spec.llama());
  ValidateFrozen(spec.real().frozen, Parameters(spec));
}

std::vector<ParameterSpec> Parameters(const ModelSpec& spec) {
  switch (spec.kind()) {
    case Family::kExact:
      return ExactParameters(spec.exact());
    case Family::kGpt2:
      return Gpt2Parameters(spec.gpt2());
    case Family::kLlama:
      return LlamaParameters(spec.llama());
  }
  Check(false, "a family has parameters");
  return {};
}

}  // namespace plumbline::contract
