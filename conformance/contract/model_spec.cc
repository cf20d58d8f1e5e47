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

 private:
  void Add(std::string name, int64_t rows, int64_t cols, UnitShape units) {
    const auto id = static_cast<int64_t>(parameters_.size());
    parameters_.push_back({std::move(name), rows, cols, id, units == UnitShape::kWhole, false, units});
  }

  std::vector<ParameterSpec> parameters_;
};

std::vector<ParameterSpec> ExactParameters(const ExactSpec& spec) {
  ParameterList list;
  list.Rows("embed.weight", spec.vocab, spec.width);
  list.Rows("pos.weight", spec.positions, spec.width);
  for (int64_t layer = 0; layer < spec.layers; ++layer) {
    const std::string prefix = "layers." + std::to_string(layer) + ".";
    list.Matrix(prefix + "attn.q", spec.width, spec.width);
    list.Matrix(prefix + "attn.k", spec.width, spec.kv_width());
    list.Matrix(prefix + "attn.v", spec.width, spec.kv_width());
    list.Matrix(prefix + "attn.o", spec.width, spec.width);
    list.Matrix(prefix + "mlp.up", spec.width, spec.hidden);
    list.Matrix(prefix + "mlp.down", spec.hidden, spec.width);
  }
  return list.Take();
}

std::vector<ParameterSpec> Gpt2Parameters(const Gpt2Spec& spec) {
  constexpr int64_t kUnusedRows = 3;
  constexpr int64_t kUnusedCols = 5;
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
    const std::string prefix = "layers." + std::to_string(layer) + ".";
    norm(prefix + "norm1");
    linear(prefix + "attn.qkv", spec.width, 3 * spec.width);
    linear(prefix + "attn.out", spec.width, spec.width);
    norm(prefix + "norm2");
    linear(prefix + "mlp.up", spec.width, spec.hidden);
    linear(prefix + "mlp.down", spec.hidden, spec.width);
  }
  norm("norm");
  if (!spec.tied_head) list.Rows("head.weight", spec.vocab, spec.width);
  if (spec.unused) list.Rows("unused.weight", kUnusedRows, kUnusedCols);
  std::vector<ParameterSpec> parameters = list.Take();
  for (ParameterSpec& parameter : parameters) {
    parameter.frozen = std::find(spec.frozen.begin(), spec.frozen.end(), parameter.name) != spec.frozen.end();
  }
  return parameters;
}

void ValidateGpt2(const Gpt2Spec& spec) {
  DemandRange("layers", spec.layers, 1, kMaxLayers);
  DemandRange("width", spec.width, 1, kMaxSize);
  DemandRange("heads", spec.heads, 1, kMaxSize);
  DemandRange("positions", spec.positions, 1, kMaxSize);
  DemandRange("hidden", spec.hidden, 1, kMaxSize);
  DemandRange("vocab", spec.vocab, 2, kMaxSize);
  DemandDivides("width", spec.width, "heads", spec.heads);
  if (!(spec.dropout >= 0 && spec.dropout < 1)) {
    Fail(ErrorCode::kInvalidArgument, "model.dropout is " + Shown(spec.dropout) + "; allowed: a number in [0, 1)");
  }
  if (!(spec.norm_epsilon > 0 && spec.norm_epsilon < 1)) {
    Fail(ErrorCode::kInvalidArgument,
         "model.norm_epsilon is " + Shown(spec.norm_epsilon) + "; allowed: a number in (0, 1)");
  }
  if (!(spec.initializer_range > 0 && spec.initializer_range < 1)) {
    Fail(ErrorCode::kInvalidArgument,
         "model.initializer_range is " + std::to_string(spec.initializer_range) + "; allowed: a number in (0, 1)");
  }
  const std::vector<ParameterSpec> parameters = Gpt2Parameters(spec);
  for (size_t i = 0; i < spec.frozen.size(); ++i) {
    const std::string& name = spec.frozen[i];
    const bool known = std::any_of(parameters.begin(), parameters.end(),
                                   [&](const ParameterSpec& parameter) { return parameter.name == name; });
    const bool twice =
        std::find(spec.frozen.begin() + static_cast<int64_t>(i) + 1, spec.frozen.end(), name) != spec.frozen.end();
    if (known && !twice) continue;
    Fail(ErrorCode::kInvalidArgument, "model.frozen names \"" + name + "\"" + (twice ? " twice" : "") +
                                          "; allowed: each parameter of the model, once");
  }
  if (std::all_of(parameters.begin(), parameters.end(), [](const ParameterSpec& entry) { return entry.frozen; })) {
    Fail(ErrorCode::kInvalidArgument, "model.frozen names every parameter; allowed: at least one is trained");
  }
}

constexpr const char* kWrongFamily = "a model is asked for what its family has";

}  // namespace

const ExactSpec& ModelSpec::exact() const {
  Check(is_exact(), kWrongFamily);
  return std::get<ExactSpec>(spec_);
}

ExactSpec& ModelSpec::exact() {
  Check(is_exact(), kWrongFamily);
  return std::get<ExactSpec>(spec_);
}

const Gpt2Spec& ModelSpec::gpt2() const {
  Check(!is_exact(), kWrongFamily);
  return std::get<Gpt2Spec>(spec_);
}

Gpt2Spec& ModelSpec::gpt2() {
  Check(!is_exact(), kWrongFamily);
  return std::get<Gpt2Spec>(spec_);
}

int64_t ModelSpec::positions() const { return is_exact() ? exact().positions : gpt2().positions; }

int64_t ModelSpec::vocab() const { return is_exact() ? exact().vocab : gpt2().vocab; }

void Validate(const ModelSpec& spec) {
  if (spec.is_exact()) {
    ValidateExact(spec.exact());
  } else {
    ValidateGpt2(spec.gpt2());
  }
}

std::vector<ParameterSpec> Parameters(const ModelSpec& spec) {
  return spec.is_exact() ? ExactParameters(spec.exact()) : Gpt2Parameters(spec.gpt2());
}

}  // namespace plumbline::contract
