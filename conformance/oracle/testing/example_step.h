// SPDX-License-Identifier: Apache-2.0
// Steps of a small gpt2 made up for tests of the oracle: gradients of the sizes that regions of a real one have, and
// errors like those that engines of fp32 and bf16 were seen to make. No engine runs here.
#pragma once

#include <cmath>
#include <numbers>
#include <vector>

#include "conformance/contract/case_file.h"
#include "conformance/contract/digest.h"
#include "conformance/oracle/gradient_region.h"
#include "conformance/oracle/step_sight.h"

namespace plumbline::conformance {

// A stream of numbers: the same for the same seed, everywhere.
class ExampleNumbers {
 public:
  explicit ExampleNumbers(uint64_t seed) : state_(contract::Mix(seed + 1)) {}

  double Uniform() {  // in (0, 1)
    state_ += 0x9E3779B97F4A7C15ull;
    return (static_cast<double>(contract::Mix(state_) >> 11) + 0.5) * 0x1p-53;
  }
  double Normal() { return std::sqrt(-2 * std::log(Uniform())) * std::cos(2 * std::numbers::pi * Uniform()); }

 private:
  uint64_t state_;
};

inline contract::Gpt2Spec ExampleGpt2() {
  contract::Gpt2Spec model;
  model.layers = 1;
  model.width = 12;
  model.heads = 3;
  model.positions = 7;
  model.hidden = 20;
  model.vocab = 19;
  model.unused = true;
  model.frozen = {"layers.0.norm2.weight"};
  return model;
}

inline contract::Case ExampleRealCase(contract::DType storage = contract::DType::kF32) {
  contract::Case spec;
  spec.id = "example";
  spec.model = ExampleGpt2();
  spec.config.train_batch_size = spec.config.micro_batch_size = 6;
  spec.config.storage = storage;
  spec.config.optimizer = contract::OptimizerKind::kAdamW;
  spec.config.params.weight_decay = 0.01;
  spec.steps = 1;
  return spec;
}

inline constexpr int64_t kExampleRealSteps[] = {0, 1, 2, 9};

// Sizes of gradients differ from tensor to tensor, element to element and step to step; that of the key part of
// attn.qkv.bias is the truth's own rounding noise, and that of the unused parameter is zero.
inline std::vector<StepSight> ExampleTruth(uint64_t seed) {
  std::vector<StepSight> sights;
  const contract::ModelSpec model = ExampleGpt2();
  for (int64_t step : kExampleRealSteps) {
    StepSight sight;
    sight.step = step;
    sight.loss = 3 - 0.1 * static_cast<double>(step);
    sight.tokens = 23;
    for (const auto& parameter : contract::Parameters(model)) {
      sight.of(contract::TensorKind::kGradient).emplace_back(parameter.frozen ? 0 : parameter.numel(), 0.0);
    }
    for (const GradientRegion& region : GradientRegions(model)) {
      ExampleNumbers numbers(seed * 1000 + static_cast<uint64_t>(step * 100) + region.tensor * 7 + region.first_col);
      double size = 0.1 * std::exp(2 * numbers.Normal());
      if (region.name.ends_with("qkv.bias (k part)")) size = 1e-18;
      if (region.name == "unused.weight") size = 0;
      ForEachElement(region, [&](size_t i) {
        sight.of(contract::TensorKind::kGradient)[region.tensor][i] =
            size * std::exp(0.5 * numbers.Normal()) * numbers.Normal();
      });
    }
    sights.push_back(std::move(sight));
  }
  return sights;
}

// What an engine of this precision makes of the truth. Regions have errors of different sizes, elements too; those
// sizes are the same for every seed, the errors are not.
inline std::vector<StepSight> ExampleEngine(const std::vector<StepSight>& truth, contract::DType storage,
                                            uint64_t seed) {
  std::vector<StepSight> sights = truth;
  const double size = storage == contract::DType::kBF16 ? 5e-3 : 2e-7;
  const contract::ModelSpec model = ExampleGpt2();
  for (StepSight& sight : sights) {
    sight.storage = storage;
    ExampleNumbers numbers(seed * 77'777 + static_cast<uint64_t>(sight.step));
    sight.loss *= 1 + 0.01 * size * numbers.Normal();
    for (const GradientRegion& region : GradientRegions(model)) {
      if (region.name == "unused.weight") continue;
      std::vector<double>& values = sight.of(contract::TensorKind::kGradient)[region.tensor];
      double squares = 0;
      ForEachElement(region, [&](size_t i) { squares += values[i] * values[i]; });
      double scale = std::sqrt(squares / static_cast<double>(region.numel()));
      if (region.name.ends_with("(k part)") && region.is_vector) scale = 1e-3;
      ExampleNumbers sizes(region.tensor * 31 + static_cast<uint64_t>(region.first_col));
      const double region_size = size * scale * std::exp(0.5 * sizes.Normal());
      ForEachElement(region,
                     [&](size_t i) { values[i] += region_size * std::exp(0.4 * sizes.Normal()) * numbers.Normal(); });
    }
  }
  return sights;
}

}  // namespace plumbline::conformance
