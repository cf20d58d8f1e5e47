// SPDX-License-Identifier: Apache-2.0
// Clipping of what the optimizer consumes: by plain SGD of rate 1, whose update is the clipped gradient.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "conformance/contract/error.h"
#include "reference/engine/real_trainer.h"
#include "reference/testing/finite_difference.h"
#include "reference/testing/random_matrix.h"
#include "reference/testing/real_case.h"
#include "reference/testing/run_step.h"

namespace plumbline::reference {
namespace {

using contract::OptimizerKind;
using contract::TensorKind;

constexpr int64_t kBatch = 4;

contract::RunConfig PlainSgd() {
  contract::RunConfig config = RealConfig(OptimizerKind::kSgd, kBatch);
  config.params = {};
  config.params.lr = 1;
  return config;
}

contract::ParameterGroup ExemptGroup(const std::string& match) {
  return {match, std::nullopt, std::nullopt, std::nullopt, false};
}

contract::Gpt2Spec Model() {
  contract::Gpt2Spec model = SmallGpt2();
  model.tied_head = false;
  model.unused = true;
  model.frozen = {"pos.weight", "layers.0.attn.out.bias"};
  return model;
}

Matrix Times(const Matrix& matrix, double factor) {
  Matrix result = matrix;
  for (int64_t i = 0; i < matrix.numel(); ++i) result[i] *= factor;
  return result;
}

// The update rounds to the master weight, which is around 1 at most.
void ExpectNear(const Matrix& a, const Matrix& b, const std::string& name) {
  ASSERT_TRUE(a.SameShape(b)) << name;
  for (int64_t i = 0; i < a.numel(); ++i) EXPECT_NEAR(a[i], b[i], 1e-15 + 1e-14 * LargestMagnitude(b)) << name;
}

double SumSquares(const Matrix& matrix) { return Inner(matrix, matrix); }

// Exempt: the biases, frozen ones among them. The norm is of the rest, and so is the factor.
TEST(ExemptGroups, AreInNoNormAndMultipliedByNoFactor) {
  contract::RunConfig config = PlainSgd();
  config.groups = {ExemptGroup("*.bias"), {"layers.1.*", std::nullopt, std::nullopt}};
  const contract::CaseData data = MakeRealCase(Model(), config, 1);
  RealTrainer free(data);
  RunStep(free, 0);
  const Tensors gradient = free.Of(TensorKind::kGradient);
  double of_clipped = 0;
  double of_all = 0;
  for (size_t i = 0; i < gradient.size(); ++i) {
    of_all += SumSquares(gradient[i]);
    if (!data.parameters[i].name.ends_with(".bias")) of_clipped += SumSquares(gradient[i]);
  }
  const double norm = std::sqrt(of_clipped);
  ASSERT_LT(norm, 0.99 * std::sqrt(of_all));
  EXPECT_NEAR(free.real()->gradient_norm, norm, 1e-14 * norm);

  // The last threshold is between both norms: it clips nothing, though the norm of all is above it.
  for (const double threshold : {norm / 8, (norm + std::sqrt(of_all)) / 2}) {
    config.gradient_clipping = threshold;
    const contract::CaseData clipped_data = MakeRealCase(Model(), config, 1);
    RealTrainer clipped(clipped_data);
    const Tensors start = clipped.Of(TensorKind::kMaster);
    RunStep(clipped, 0);
    EXPECT_EQ(clipped.real()->gradient_norm, free.real()->gradient_norm);
    EXPECT_EQ(clipped.Of(TensorKind::kGradient), gradient);
    const double factor = std::min(1.0, threshold / (norm + 1e-6));
    for (size_t i = 0; i < start.size(); ++i) {
      if (data.parameters[i].frozen) continue;
      const std::string& name = data.parameters[i].name;
      ExpectNear(Minus(start[i], clipped.Of(TensorKind::kMaster)[i]),
                 Times(gradient[i], name.ends_with(".bias") ? 1 : factor), name);
    }
  }
}

// Nothing has a part in the norm, which is 0 until a gradient is not finite. The embedding, parameter 0, has the
// infinite element that makes it so.
TEST(ExemptGroups, WithANanOrInfinityMakeTheNormNotFiniteAndSkipTheStep) {
  contract::RunConfig config = PlainSgd();
  config.params.lr = 0.125;
  config.groups = {ExemptGroup("*")};
  config.gradient_clipping = 0.5;
  contract::CaseData data = MakeRealCase(Model(), config, 3);
  PoisonStep(data, 1);
  RealTrainer trainer(data);
  RunStep(trainer, 0);
  EXPECT_EQ(trainer.real()->gradient_norm, 0);
  EXPECT_FALSE(trainer.real()->skipped);
  const Tensors master = trainer.Of(TensorKind::kMaster);
  RunStep(trainer, 1);
  EXPECT_FALSE(std::isfinite(trainer.real()->gradient_norm));
  EXPECT_TRUE(trainer.real()->skipped);
  for (size_t i = 1; i < master.size(); ++i) EXPECT_EQ(trainer.Of(TensorKind::kMaster)[i], master[i]);
  EXPECT_EQ(trainer.num_updates(), 1);
  RunStep(trainer, 2);
  EXPECT_EQ(trainer.real()->gradient_norm, 0);
  EXPECT_FALSE(trainer.real()->skipped);
  EXPECT_NE(trainer.Of(TensorKind::kMaster)[2], master[2]);
}

// docs/semantics.md, by name: rows, columns, or the whole of a vector.
std::vector<std::vector<int64_t>> UnitsOf(const contract::ParameterSpec& parameter) {
  const std::string& name = parameter.name;
  const bool rows = name == "embed.weight" || name == "head.weight" || name == "unused.weight";
  const bool linear = name.find(".attn.") != std::string::npos || name.find(".mlp.") != std::string::npos;
  const bool columns = linear && name.ends_with(".weight");
  const auto num_units = static_cast<size_t>(rows ? parameter.rows : columns ? parameter.cols : 1);
  std::vector<std::vector<int64_t>> units(num_units);
  for (int64_t r = 0; r < parameter.rows; ++r)
    for (int64_t c = 0; c < parameter.cols; ++c)
      units[static_cast<size_t>(rows ? r : columns ? c : 0)].push_back(r * parameter.cols + c);
  return units;
}

double NormOf(const Matrix& matrix, const std::vector<int64_t>& unit) {
  double sum_squares = 0;
  for (const int64_t i : unit) sum_squares += matrix[i] * matrix[i];
  return std::sqrt(sum_squares);
}

constexpr double kRatio = 0.0625;
constexpr double kEps = 0.03125;

contract::RunConfig ClippingByUnits() {
  contract::RunConfig config = PlainSgd();
  config.adaptive_clipping.kind = contract::AdaptiveClipping::Kind::kUnit;
  config.adaptive_clipping.ratio = kRatio;
  config.adaptive_clipping.eps = kEps;
  return config;
}

// Some units are clipped and some are not, some by their weights and some by ε. The biases of layer 0 are exempt.
TEST(ClippingByUnits, ClipsEachRowOrColumnOrVectorByItsWeightsBeforeTheUpdate) {
  contract::RunConfig config = ClippingByUnits();
  config.groups = {ExemptGroup("layers.0.*.bias")};
  const contract::CaseData data = MakeRealCase(Model(), config, 1);
  RealTrainer trainer(data);
  const Tensors start = trainer.Of(TensorKind::kMaster);
  RunStep(trainer, 0);
  double norm_squares = 0;
  int64_t num_clipped = 0;
  int64_t num_free = 0;
  int64_t num_by_eps = 0;
  for (size_t i = 0; i < start.size(); ++i) {
    const contract::ParameterSpec& parameter = data.parameters[i];
    if (parameter.frozen) continue;
    const Matrix& gradient = trainer.Of(TensorKind::kGradient)[i];
    const bool exempt = parameter.name.starts_with("layers.0.") && parameter.name.ends_with(".bias");
    if (!exempt) norm_squares += SumSquares(gradient);
    Matrix expected = gradient;
    for (const std::vector<int64_t>& unit : UnitsOf(parameter)) {
      const double limit = kRatio * std::max(NormOf(start[i], unit), kEps);
      const double norm = NormOf(gradient, unit);
      (norm > limit ? num_clipped : num_free) += 1;
      num_by_eps += norm > limit && limit == kRatio * kEps ? 1 : 0;
      for (const int64_t element : unit)
        if (!exempt && norm > limit) expected[element] *= limit / norm;
    }
    ExpectNear(Minus(start[i], trainer.Of(TensorKind::kMaster)[i]), expected, parameter.name);
  }
  EXPECT_NEAR(trainer.real()->gradient_norm, std::sqrt(norm_squares), 1e-14);
  EXPECT_GT(num_clipped, num_by_eps);
  EXPECT_GT(num_by_eps, 0);
  EXPECT_GT(num_free, 0);
  EXPECT_FALSE(trainer.real()->norm_history);
}

TEST(ClippingByUnits, SkipsAStepWhoseGradientIsNotFinite) {
  contract::CaseData data = MakeRealCase(Model(), ClippingByUnits(), 2);
  PoisonStep(data, 0);
  RealTrainer trainer(data);
  const Tensors start = trainer.Of(TensorKind::kMaster);
  RunStep(trainer, 0);
  EXPECT_TRUE(trainer.real()->skipped);
  EXPECT_EQ(trainer.Of(TensorKind::kMaster), start);
  RunStep(trainer, 1);
  EXPECT_FALSE(trainer.real()->skipped);
  EXPECT_NE(trainer.Of(TensorKind::kMaster)[2], start[2]);
}

contract::RunConfig ClippingByHistory() {
  contract::RunConfig config = PlainSgd();
  config.params.lr = 0.125;
  config.groups = {ExemptGroup("*.bias")};
  config.adaptive_clipping.kind = contract::AdaptiveClipping::Kind::kHistory;
  config.adaptive_clipping.deviations = 0.5;
  config.adaptive_clipping.decay = 0.75;
  config.adaptive_clipping.warmup_steps = 3;
  return config;
}

// The factor of a step by docs/semantics.md, and the history that it leaves.
struct HistoryByHand {
  double n, mean, variance;
  double factor = 1;

  void Step(double norm) {
    const double threshold = mean + 0.5 * std::sqrt(variance);
    if (n < 3) {
      const double delta = norm - mean;
      mean += delta / (n + 1);
      variance = (n * variance + delta * (norm - mean)) / (n + 1);
    } else {
      factor = std::min(1.0, threshold / (norm + 1e-6));
      mean = 0.75 * mean + 0.25 * std::min(norm, threshold);
      variance = 0.75 * variance + 0.25 * std::pow(std::min(norm, threshold) - mean, 2);
    }
    n += 1;
  }
};

void ExpectHistory(const RealTrainer& trainer, const HistoryByHand& expected) {
  const std::optional<contract::NormHistory> history = trainer.real()->norm_history;
  ASSERT_TRUE(history);
  EXPECT_EQ(static_cast<double>(history->count), expected.n);
  EXPECT_NEAR(history->mean, expected.mean, 1e-14);
  EXPECT_NEAR(history->variance, expected.variance, 1e-14);
}

// From a history of one small norm that the case brings: warm-up, warm-up, a skipped step, then clipping. Biases are
// exempt. The embedding, parameter 0, has the infinite element.
TEST(ClippingByHistory, GoesOnFromTheCasesHistoryAndLeavesItInASkippedStep) {
  contract::CaseData data = MakeRealCase(Model(), ClippingByHistory(), 6);
  data.norm_history = {1, 0.0625, 0.03125};
  PoisonStep(data, 2);
  RealTrainer trainer(data);
  HistoryByHand expected{1, 0.0625, 0.03125};
  int num_clipped = 0;
  for (int64_t step = 0; step < 6; ++step) {
    SCOPED_TRACE(testing::Message() << "step " << step);
    const Tensors start = trainer.Of(TensorKind::kMaster);
    RunStep(trainer, step);
    ASSERT_EQ(trainer.real()->skipped, step == 2);
    if (step != 2) expected.Step(trainer.real()->gradient_norm);
    ExpectHistory(trainer, expected);
    num_clipped += expected.factor < 1 ? 1 : 0;
    for (size_t i = 1; i < start.size() && step != 2; ++i) {
      const std::string& name = data.parameters[i].name;
      if (data.parameters[i].frozen) continue;
      const double factor = name.ends_with(".bias") ? 1 : expected.factor;
      ExpectNear(Minus(start[i], trainer.Of(TensorKind::kMaster)[i]),
                 Times(trainer.Of(TensorKind::kGradient)[i], 0.125 * factor), name);
    }
  }
  EXPECT_GT(num_clipped, 1);
  EXPECT_EQ(expected.n, 6);
}

TEST(Clipping, RejectsAKindThatIsNotKnown) {
  contract::RunConfig config = PlainSgd();
  config.adaptive_clipping.kind = static_cast<contract::AdaptiveClipping::Kind>(3);
  RealTrainer trainer(MakeRealCase(Model(), config, 1));
  try {
    RunStep(trainer, 0);
    FAIL() << "clipped";
  } catch (const contract::Error& error) {
    EXPECT_EQ(error.code(), contract::ErrorCode::kUnsupported) << error.what();
  }
}

}  // namespace
}  // namespace plumbline::reference
