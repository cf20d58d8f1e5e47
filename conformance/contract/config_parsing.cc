// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/config_parsing.h"

#include <algorithm>
#include <string>
#include <vector>

#include "conformance/contract/known_keys.h"

namespace plumbline::contract {
namespace {

constexpr std::string_view kAutoKeys[] = {
    "train_batch_size",   "train_micro_batch_size_per_gpu", "gradient_accumulation_steps",
    "reduce_bucket_size", "stage3_prefetch_bucket_size",    "stage3_param_persistence_threshold"};

}  // namespace

void CheckKeys(const JsonValue& object, std::span<const std::string_view> built, std::string_view path) {
  std::vector<std::string_view> others = FixedNames(path);
  for (const auto& names : {HintNames(path), UnbuiltNames(path)}) {
    others.insert(others.end(), names.begin(), names.end());
  }
  object.AllowOnly(built, others);
  CheckKnownKeys(object, path);
  for (const std::string_view key : built) {
    if (std::find(std::begin(kAutoKeys), std::end(kAutoKeys), key) != std::end(kAutoKeys)) continue;
    const auto value = object.Find(key);
    if (value && IsAuto(*value)) {
      value->Reject(
          "a value; \"auto\" is resolved for the batch and for sizes that follow from the model's width alone");
    }
  }
}

bool IsAuto(const JsonValue& value) { return value.IsString() && value.String() == "auto"; }

double NumberIn(const JsonValue& value, double min, double max, std::string_view allowed) {
  const double number = value.Number();
  if (!(number >= min && number < max)) value.Reject(allowed);
  return number;
}

double NotNegative(const JsonValue& value) { return NumberIn(value, 0, 1e30, "a number of at least 0 and below 1e30"); }

double Positive(const JsonValue& value) {
  constexpr double kSmallest = 5e-324;
  return NumberIn(value, kSmallest, 1e30, "a number of more than 0 and below 1e30");
}

double Share(const JsonValue& value) { return NumberIn(value, 0, 1, "a number in [0, 1)"); }

}  // namespace plumbline::contract
