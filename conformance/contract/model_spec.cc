// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/model_spec.h"

#include <utility>

#include "conformance/contract/error.h"

namespace plumbline::contract {
namespace {

// Keeps every product of sizes far inside int64, so that sizes can be multiplied without further checks.
constexpr int64_t kMaxSize = int64_t{1} << 20;
// Integers up to 2^24 are exact in fp32; folds of larger bounds could not be.
constexpr int64_t kMaxBound = int64_t{1} << 16;

void DemandRange(const char* field, int64_t value, int64_t min, int64_t max) {
  if (value >= min && value <= max) return;
  Fail(ErrorCode::kInvalidArgument, std::string("model.") + field + " is " + std::to_string(value) +
                                        "; allowed: an integer from " + std::to_string(min) + " to " +
                                        std::to_string(max));
}

void DemandDivides(const char* field, int64_t value, const char* by, int64_t divisor) {
  if (value % divisor == 0) return;
  Fail(ErrorCode::kInvalidArgument, std::string("model.") + field + " is " + std::to_string(value) +
                                        "; allowed: a multiple of model." + by + " = " + std::to_string(divisor));
}

}  // namespace

void Validate(const ExactSpec& spec) {
  DemandRange("layers", spec.layers, 1, 4096);
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

std::vector<ParameterSpec> Parameters(const ExactSpec& spec) {
  std::vector<ParameterSpec> parameters;
  const auto add = [&](std::string name, int64_t rows, int64_t cols) {
    const auto id = static_cast<int64_t>(parameters.size());
    parameters.push_back({std::move(name), rows, cols, id});
  };
  add("embed.weight", spec.vocab, spec.width);
  add("pos.weight", spec.positions, spec.width);
  for (int64_t layer = 0; layer < spec.layers; ++layer) {
    const std::string prefix = "layers." + std::to_string(layer) + ".";
    add(prefix + "attn.q", spec.width, spec.width);
    add(prefix + "attn.k", spec.width, spec.kv_width());
    add(prefix + "attn.v", spec.width, spec.kv_width());
    add(prefix + "attn.o", spec.width, spec.width);
    add(prefix + "mlp.up", spec.width, spec.hidden);
    add(prefix + "mlp.down", spec.hidden, spec.width);
  }
  return parameters;
}

}  // namespace plumbline::contract
