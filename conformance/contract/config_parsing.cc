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

// A number that is missing, or of another type, is told the same as one out of range.
double Number(const JsonValue& value, bool (*is_allowed)(double), std::string_view allowed) {
  if (!value.IsNumber() || !is_allowed(value.Number())) value.Reject(allowed);
  return value.Number();
}

bool IsPositive(double number) { return number >= 1e-30 && number < 1e30; }

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

double Positive(const JsonValue& value) { return Number(value, IsPositive, "a number from 1e-30 to below 1e30"); }

double NotNegative(const JsonValue& value) {
  return Number(
      value, [](double number) { return number == 0 || IsPositive(number); },
      "0, or a number from 1e-30 to below 1e30");
}

double Share(const JsonValue& value) {
  return Number(
      value, [](double number) { return number >= 0 && number <= 0.9999999; }, "a number from 0 to 0.9999999");
}

}  // namespace plumbline::contract
