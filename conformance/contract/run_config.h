// SPDX-License-Identifier: Apache-2.0
// How it is trained: the JSON that DeepSpeed users have, plus "mesh". Table of keys: docs/formats.md.
// An unknown key is an error that names the nearest known one; a known key whose feature is not built is Unsupported.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "conformance/contract/dtype.h"

namespace plumbline::contract {

class JsonValue;

enum class OptimizerKind { kModularMomentum, kModularSgd };

std::string_view Name(OptimizerKind kind);

struct RunConfig {
  int64_t train_batch_size = 1;
  int64_t micro_batch_size = 1;
  int64_t accumulation_steps = 1;
  int64_t data_degree = 1;
  DType storage = DType::kF32;  // kF32 or kBF16: weights and activations
  int64_t zero_stage = 0;       // 0 ... 3
  int64_t reduce_bucket_elems = 500'000'000;
  OptimizerKind optimizer = OptimizerKind::kModularMomentum;

  int64_t world_size() const { return data_degree; }

  friend bool operator==(const RunConfig&, const RunConfig&) = default;
};

// Parses, resolves "auto" and checks every rule. `where` begins each error message ("case.json: config").
RunConfig ParseRunConfig(std::string_view json, std::string_view where);
RunConfig ParseRunConfig(const JsonValue& root);

// Canonical JSON text: every key, resolved, in the order of docs/formats.md. Parses back to the same value.
std::string ToJson(const RunConfig& config);

}  // namespace plumbline::contract
