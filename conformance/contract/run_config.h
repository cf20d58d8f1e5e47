// SPDX-License-Identifier: Apache-2.0
// How it is trained: the JSON that DeepSpeed users have, plus "mesh". Table of keys: docs/formats.md.
// An unknown key is an error that names the nearest known one; what known_keys.h knows and is not built is Unsupported.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/contract/dtype.h"
#include "conformance/contract/known_keys.h"
#include "conformance/contract/loss_scale.h"
#include "conformance/contract/schedule.h"

namespace plumbline::contract {

class JsonValue;

// The modular ones belong to family exact, the others to the real families (docs/semantics.md).
enum class OptimizerKind { kModularMomentum, kModularSgd, kAdamW, kSgd, kAdam, kLion, kLamb };

std::string_view Name(OptimizerKind kind);
bool IsModular(OptimizerKind kind);
bool HasBetas(OptimizerKind kind);

// Of the real families' optimizers; each reads its own.
struct OptimizerParams {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;  // 0.01 is AdamW's default
  double momentum = 0;
  bool nesterov = false;
  double max_coeff = 10;  // LAMB: bounds of the ratio of norms
  double min_coeff = 0.01;

  friend bool operator==(const OptimizerParams&, const OptimizerParams&) = default;
};

struct BetaPair {
  double first = 0;
  double second = 0;

  friend bool operator==(const BetaPair&, const BetaPair&) = default;
};

// What is not set is the optimizer's.
struct ParameterGroup {
  std::string match;  // shell pattern over parameter names
  std::optional<double> lr;
  std::optional<double> weight_decay;
  std::optional<BetaPair> betas = {};
  bool clip = true;  // false: exempt from clipping and from its norm

  friend bool operator==(const ParameterGroup&, const ParameterGroup&) = default;
};

// Instead of a constant largest norm (docs/semantics.md, "Clipping"). Each kind reads its own.
struct AdaptiveClipping {
  enum class Kind { kNone, kUnit, kHistory };

  Kind kind = Kind::kNone;
  double ratio = 0.01;  // kUnit
  double eps = 1e-3;
  double deviations = 2.5;  // kHistory
  double decay = 0.97;
  int64_t warmup_steps = 25;

  friend bool operator==(const AdaptiveClipping&, const AdaptiveClipping&) = default;
};

struct RunConfig {
  int64_t train_batch_size = 1;
  int64_t micro_batch_size = 1;
  int64_t accumulation_steps = 1;
  int64_t data_degree = 1;
  DType storage = DType::kF32;  // kF32, kBF16, kF16 or kF64: weights and activations; with kF64 all else is fp64 too
  int64_t loss_scale = 1;       // with kF16: gradients are made of the loss times this, a power of two; 0: dynamic_loss_scale
  DynamicLossScale dynamic_loss_scale = {};
  int64_t zero_stage = 0;       // 0 ... 3
  std::vector<int64_t> layer_stages = {};  // of each layer's parameters, where layers differ; else empty
  int64_t reduce_bucket_elems = 500'000'000;
  bool overlap_comm = true;
  int64_t prefetch_bucket_elems = 50'000'000;     // stage 3
  int64_t persistence_threshold_elems = 100'000;  // stage 3: smaller parameters stay gathered
  int64_t max_live_elems = 1'000'000'000;         // stage 3
  OptimizerKind optimizer = OptimizerKind::kModularMomentum;
  OptimizerParams params;
  std::vector<ParameterGroup> groups;  // the first that matches; else the default group
  Schedule schedule;
  double gradient_clipping = 0;  // 0: none; then another kind may clip
  AdaptiveClipping adaptive_clipping = {};
  Hints hints = {};  // how, not what: for engines that know them

  int64_t world_size() const { return data_degree; }

  friend bool operator==(const RunConfig&, const RunConfig&) = default;
};

// Whether the loss scale changes by itself: the state, traces and checkpoints then hold a LossScaler.
bool HasDynamicLossScale(const RunConfig& config);

// What descriptions and cases call a storage type: "fp64", "fp32", "bf16", "fp16".
std::string_view StorageName(DType storage);

// Parses, resolves "auto" and checks every rule. `where` begins each error message ("case.json: config"). `width` is
// the model's, from which three sizes of ZeRO follow where they are "auto"; without it they must be numbers.
RunConfig ParseRunConfig(std::string_view json, std::string_view where);
RunConfig ParseRunConfig(const JsonValue& root, std::optional<int64_t> width = std::nullopt);

// Canonical JSON text: every key that applies, resolved, in the order of docs/formats.md. Parses back to the same
// value.
std::string ToJson(const RunConfig& config);

}  // namespace plumbline::contract
