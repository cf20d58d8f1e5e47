// SPDX-License-Identifier: Apache-2.0
// Clipping in the real families in fp64 against docs/semantics.md, with SGD of lr 1, whose updates are the clipped
// gradients.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "conformance/contract/case_file.h"
#include "conformance/engines/torch_eager/real_test_run.h"
#include "conformance/engines/torch_eager/real_trainer.h"
#include "conformance/engines/torch_eager/test_case.h"

namespace plumbline::conformance::torch_eager {
namespace {

using contract::CaseData;
using contract::TensorKind;

// Attention's weights and biases are exempt in layer 1, but for `out.bias`, which an earlier group takes.
contract::RunConfig Config() {
  contract::RunConfig config;
  config.optimizer = contract::OptimizerKind::kSgd;
  config.storage = contract::DType::kF64;
  config.params.lr = 1;
  config.groups = {{.match = "*.out.bias", .lr = {}, .weight_decay = {}},
                   {.match = "layers.1.attn.*", .lr = {}, .weight_decay = {}, .betas = {}, .clip = false}};
  return config;
}

bool IsExempt(const std::string& name) { return name.starts_with("layers.1.attn.") && !name.ends_with("out.bias"); }

// Untied, with an unused and two frozen parameters.
CaseData MakeCase(const contract::RunConfig& config, int64_t steps) {
  contract::Gpt2Spec model = Tiny();
  model.tied_head = false;
  model.unused = true;
  model.frozen = {"embed.weight", "layers.0.mlp.down.weight"};
  return MakeRealCase(model, config, steps);
}

std::vector<double> Gradient(const RealTrainer& trainer, size_t index) {
  return Doubles(trainer.Values(TensorKind::kGradient, index));
}

// Of a parameter in a step: where it began, the gradient that was found, and what was subtracted from the master
// weights.
struct Update {
  std::string name;
  std::vector<double> before, gradient, applied;
};

std::vector<std::vector<double>> Masters(const RealTrainer& trainer, const CaseData& data) {
  std::vector<std::vector<double>> masters;
  for (size_t i = 0; i < data.parameters.size(); ++i)
    masters.push_back(Doubles(trainer.Values(TensorKind::kMaster, i)));
  return masters;
}

// Of all parameters that are not frozen, by the step that came after `before`.
std::vector<Update> Updates(const RealTrainer& trainer, const CaseData& data,
                            const std::vector<std::vector<double>>& before) {
  std::vector<Update> updates;
  for (size_t i = 0; i < data.parameters.size(); ++i) {
    if (data.parameters[i].frozen) continue;
    Update& update = updates.emplace_back(Update{data.parameters[i].name, before[i], Gradient(trainer, i), before[i]});
    const std::vector<double> after = Doubles(trainer.Values(TensorKind::kMaster, i));
    for (size_t e = 0; e < after.size(); ++e) update.applied[e] -= after[e];
  }
  return updates;
}

double SumOfSquares(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return sum;
}

void ExpectFactor(const std::vector<Update>& updates, double factor) {
  for (const Update& update : updates) {
    const double own_factor = IsExempt(update.name) ? 1 : factor;
    for (size_t e = 0; e < update.gradient.size(); ++e) {
      ASSERT_NEAR(update.applied[e], own_factor * update.gradient[e], 1e-14) << update.name << "[" << e << "]";
    }
  }
}

TEST(RealClipping, ExemptGroupsAreInNoNormAndMultipliedByNoFactor) {
  contract::RunConfig config = Config();
  config.gradient_clipping = 0.0625;
  const CaseData data = MakeCase(config, 1);
  RealTrainer trainer(data);
  const std::vector<std::vector<double>> before = Masters(trainer, data);
  const contract::RealStep report = TrainStep(trainer, data, 0);
  EXPECT_FALSE(report.norm_history.has_value());
  double sum = 0, exempt_sum = 0;
  for (const Update& update : Updates(trainer, data, before)) {
    (IsExempt(update.name) ? exempt_sum : sum) += SumOfSquares(update.gradient);
  }
  ASSERT_GT(exempt_sum, 1e-6);
  ASSERT_GT(report.gradient_norm, 0.0625);
  EXPECT_NEAR(report.gradient_norm, std::sqrt(sum), 1e-14);
  ExpectFactor(Updates(trainer, data, before), 0.0625 / (report.gradient_norm + 1e-6));
}

// Everything is exempt but the unused parameter, whose gradient is zero whatever the others have.
TEST(RealClipping, AGradientThatIsNotFiniteSkipsTheStepThoughItIsExempt) {
  contract::RunConfig config = Config();
  config.groups = {{.match = "[!u]*", .lr = {}, .weight_decay = {}, .betas = {}, .clip = false}};
  for (const float poison : {0.0f, std::numeric_limits<float>::infinity()}) {
    CaseData data = MakeCase(config, 1);
    data.real_state[IndexOf(data, "norm.weight")].master[0] += poison;
    RealTrainer trainer(data);
    const contract::RealStep report = TrainStep(trainer, data, 0);
    EXPECT_EQ(report.skipped, poison > 0);
    EXPECT_EQ(std::isfinite(report.gradient_norm), poison == 0);
    EXPECT_TRUE(poison > 0 || report.gradient_norm == 0);
    EXPECT_EQ(Gradient(trainer, IndexOf(data, "unused.weight")), std::vector<double>(15));
  }
}

// How often a unit's limit was and was not reached, and was that of a small weight.
struct UnitCounts {
  int clipped = 0, kept = 0, small = 0;
};

// The unit of elements first, first + stride, ... against the document.
void ExpectUnit(const Update& update, size_t first, size_t stride, size_t size, UnitCounts& counts) {
  double gradient = 0, weight = 0;
  for (size_t k = 0; k < size; ++k) {
    gradient += std::pow(update.gradient[first + k * stride], 2);
    weight += std::pow(update.before[first + k * stride], 2);
  }
  const double limit = 0.125 * std::max(std::sqrt(weight), 0.046875);
  const bool clips = !IsExempt(update.name) && std::sqrt(gradient) > limit;
  ++(clips ? counts.clipped : counts.kept);
  counts.small += clips && std::sqrt(weight) < 0.046875;
  const double factor = clips ? limit / std::sqrt(gradient) : 1;
  for (size_t e = first; e < first + size * stride; e += stride) {
    ASSERT_NEAR(update.applied[e], factor * update.gradient[e], 1e-14) << update.name << "[" << e << "]";
  }
}

// Sizes as the document has them: d = 6, H = 7; the head and the embeddings have rows of 6, the unused one of 5.
struct Matrix {
  const char* suffix;
  size_t rows, cols;
  bool by_rows;
};
constexpr Matrix kMatrices[] = {{"pos.weight", 5, 6, true},      {"head.weight", 11, 6, true},
                                {"unused.weight", 3, 5, true},   {"qkv.weight", 6, 18, false},
                                {"out.weight", 6, 6, false},     {"mlp.up.weight", 6, 7, false},
                                {"mlp.down.weight", 7, 6, false}};

// In two steps, so that the weights are those before each.
TEST(RealClipping, UnitsAreRowsOfEmbeddingsColumnsOfOtherMatricesAndWholeVectors) {
  contract::RunConfig config = Config();
  config.adaptive_clipping = {.kind = contract::AdaptiveClipping::Kind::kUnit, .ratio = 0.125, .eps = 0.046875};
  const CaseData data = MakeCase(config, 2);
  RealTrainer trainer(data);
  UnitCounts rows, columns, vectors;
  for (int64_t step = 0; step < 2; ++step) {
    const std::vector<std::vector<double>> before = Masters(trainer, data);
    const contract::RealStep report = TrainStep(trainer, data, step);
    double sum = 0;
    for (const Update& update : Updates(trainer, data, before)) {
      if (!IsExempt(update.name)) sum += SumOfSquares(update.gradient);
      const auto* matrix = std::find_if(std::begin(kMatrices), std::end(kMatrices),
                                        [&](const Matrix& m) { return update.name.ends_with(m.suffix); });
      if (matrix == std::end(kMatrices)) {
        ExpectUnit(update, 0, 1, update.gradient.size(), vectors);
        continue;
      }
      ASSERT_EQ(update.gradient.size(), matrix->rows * matrix->cols) << update.name;
      for (size_t r = 0; matrix->by_rows && r < matrix->rows; ++r) {
        ExpectUnit(update, r * matrix->cols, 1, matrix->cols, rows);
      }
      for (size_t c = 0; !matrix->by_rows && c < matrix->cols; ++c) {
        ExpectUnit(update, c, matrix->cols, matrix->rows, columns);
      }
    }
    EXPECT_NEAR(report.gradient_norm, std::sqrt(sum), 1e-13);
    EXPECT_FALSE(report.norm_history.has_value());
  }
  for (const UnitCounts& counts : {rows, columns, vectors}) {
    EXPECT_GT(counts.clipped - counts.small, 0);
    EXPECT_GT(counts.kept, 0);
    EXPECT_GT(counts.small, 0);
  }
}

// The frozen embedding of token 7 is infinite, and only this step reads it.
constexpr int64_t kSkipped = 1;

CaseData HistoryCase() {
  contract::RunConfig config = Config();
  config.adaptive_clipping = {
      .kind = contract::AdaptiveClipping::Kind::kHistory, .deviations = 0.25, .decay = 0.75, .warmup_steps = 3};
  CaseData data = MakeCase(config, 4);
  data.norm_history = {2, 0.0625, 0.25 / 256};
  data.real_state[0].master[7 * 6] = std::numeric_limits<float>::infinity();
  std::replace(data.batches.tokens.begin(), data.batches.tokens.end(), 7, 3);
  data.batches.tokens[data.batches.Index(kSkipped, 0, 0)] = 7;
  return data;
}

// The first norm is several times the mean that the case gives, and yet is counted only; so the second, after the step
// that is skipped, is above the threshold. The third, of a model that has learned, is below it.
TEST(RealClipping, ByHistoryBeginsAfterTheWarmUpAndIsKeptOverASkippedStep) {
  const CaseData data = HistoryCase();
  RealTrainer trainer(data);
  double mean = 0.0625, variance = 0.25 / 256;
  for (int64_t step = 0; step < 4; ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    const std::vector<std::vector<double>> before = Masters(trainer, data);
    const contract::RealStep report = TrainStep(trainer, data, step);
    ASSERT_EQ(report.skipped, step == kSkipped);
    const double norm = report.gradient_norm, threshold = mean + 0.25 * std::sqrt(variance);
    if (step == 0) {
      ASSERT_GT(norm, 2 * threshold);
      ExpectFactor(Updates(trainer, data, before), 1);
      const double new_mean = mean + (norm - mean) / 3;
      variance = (2 * variance + (norm - mean) * (norm - new_mean)) / 3;
      mean = new_mean;
    } else if (!report.skipped) {
      ASSERT_EQ(norm > threshold, step == 2) << norm << " and " << threshold;
      ExpectFactor(Updates(trainer, data, before), step == 2 ? threshold / (norm + 1e-6) : 1);
      const double counted = std::min(norm, threshold);
      mean = 0.75 * mean + 0.25 * counted;
      variance = 0.75 * variance + 0.25 * (counted - mean) * (counted - mean);
    }
    ASSERT_TRUE(report.norm_history.has_value());
    EXPECT_EQ(report.norm_history->count, 2 + step + (step < kSkipped ? 1 : 0)) << step;
    EXPECT_NEAR(report.norm_history->mean, mean, 1e-14) << step;
    EXPECT_NEAR(report.norm_history->variance, variance, 1e-14) << step;
  }
}

// The threshold is no floor: gradients of a smaller norm are as they were.
TEST(RealClipping, ByHistoryLeavesWhatIsBelowTheThreshold) {
  CaseData data = HistoryCase();
  data.norm_history = {70, 8, 0};
  RealTrainer trainer(data);
  const std::vector<std::vector<double>> before = Masters(trainer, data);
  const contract::RealStep report = TrainStep(trainer, data, 0);
  ASSERT_LT(report.gradient_norm, 8);
  ExpectFactor(Updates(trainer, data, before), 1);
  EXPECT_NEAR(report.norm_history.value().mean, 6 + report.gradient_norm / 4, 1e-14);
}

}  // namespace
}  // namespace plumbline::conformance::torch_eager
