// SPDX-License-Identifier: Apache-2.0
// Twenty steps of family gpt2 on real text, through whole cases: the loss falls from that of guessing, in several
// layouts and both types. It says that training works, not that it is right: that is for comparisons.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "conformance/contract/batch_source.h"
#include "optimized/engine/testing/case_run.h"

namespace plumbline::optimized {
namespace {

using contract::DType;

constexpr int64_t kSteps = 20;
constexpr int64_t kBatch = 12;

struct Setting {
  int64_t data_degree;
  int64_t zero_stage;
  int64_t accumulation;
  DType storage;
  contract::OptimizerKind optimizer;
  double lr;
};

contract::CaseData LicenseCase(const Setting& setting) {
  contract::CaseData data;
  data.spec.id = "license_text";
  const contract::Gpt2Spec spec{{.layers = 2,
                                 .width = 36,
                                 .heads = 3,
                                 .positions = 17,
                                 .hidden = 67,
                                 .vocab = 128,
                                 .dropout = 0.1,
                                 .frozen = {}}};
  data.spec.model = spec;
  contract::RunConfig& config = data.spec.config;
  config.train_batch_size = kBatch;
  config.data_degree = setting.data_degree;
  config.accumulation_steps = setting.accumulation;
  config.micro_batch_size = kBatch / setting.data_degree / setting.accumulation;
  config.zero_stage = setting.zero_stage;
  config.storage = setting.storage;
  config.reduce_bucket_elems = 5000;
  config.persistence_threshold_elems = 100;
  config.optimizer = setting.optimizer;
  config.params = {.lr = setting.lr, .weight_decay = 0.01};
  if (setting.optimizer == contract::OptimizerKind::kSgd) config.params.momentum = 0.9;
  config.gradient_clipping = 1;
  data.spec.seed = 3;
  data.spec.steps = kSteps;
  data.parameters = contract::Parameters(data.spec.model);
  data.real_state = contract::MakeInitialRealState(spec, config, data.spec.seed);
  data.batches =
      contract::MakeBatches(contract::ReadTokenSource("LICENSE"), data.spec.model, {data.spec.seed, 0, kSteps, kBatch});
  return data;
}

double Mean(const std::vector<double>& values, int64_t begin, int64_t end) {
  return std::accumulate(values.begin() + begin, values.begin() + end, 0.0) / static_cast<double>(end - begin);
}

std::vector<double> Losses(const Setting& setting) {
  const contract::CaseData data = LicenseCase(setting);
  return testing::Combine(testing::RunInFreshFolders(data), data).losses;
}

// A fifth below guessing among 128, over the last five steps.
bool HasFallen(const std::vector<double>& losses) { return Mean(losses, 15, 20) < 0.8 * std::log(128.0); }

TEST(LicenseText, TheLossFallsFromThatOfGuessingInTwentySteps) {
  using enum contract::OptimizerKind;
  for (const Setting& setting :
       {Setting{1, 0, 1, DType::kF32, kAdamW, 1e-2}, Setting{2, 1, 3, DType::kF32, kAdamW, 1e-2},
        Setting{3, 2, 2, DType::kBF16, kAdamW, 1e-2}, Setting{4, 3, 1, DType::kBF16, kAdamW, 1e-2},
        Setting{2, 3, 2, DType::kF32, kSgd, 0.3}}) {
    const std::vector<double> losses = Losses(setting);
    ASSERT_EQ(losses.size(), static_cast<size_t>(kSteps));
    EXPECT_NEAR(losses[0], std::log(128.0), 0.05) << "small weights guess";
    EXPECT_TRUE(HasFallen(losses)) << "zero " << setting.zero_stage << ": " << Mean(losses, 15, 20);
  }
}

TEST(LicenseText, WithARateOfZeroItDoesNotFall) {
  EXPECT_FALSE(HasFallen(Losses({2, 2, 1, DType::kF32, contract::OptimizerKind::kAdamW, 0})));
}

}  // namespace
}  // namespace plumbline::optimized
