// SPDX-License-Identifier: Apache-2.0
// Training steps of family gpt2 in every ZeRO stage: the same bits whatever is sharded, the same training for every
// number of ranks within rounding, clipping by the global norm, and steps that all ranks skip.
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "kernels/bf16.h"
#include "optimized/engine/testing/real_case.h"

namespace plumbline::optimized {
namespace {

using contract::DType;
using testing::Layout;

contract::CaseData MakeRealCase(const Layout& layout, contract::OptimizerKind optimizer) {
  return testing::MakeRealCase(layout, {.optimizer = optimizer});
}

// Whole, by canonical index; NaN where no rank holds an element.
struct Trained {
  std::vector<std::vector<float>> master, moment, weight;
  std::vector<double> losses, norms;  // of each step
  std::vector<bool> skipped;
  int64_t num_updates = 0;
};

Trained Train(const contract::CaseData& data) {
  Trained trained;
  for (const contract::ParameterSpec& p : data.parameters) {
    for (auto* quantity : {&trained.master, &trained.moment, &trained.weight}) quantity->emplace_back(p.numel(), NAN);
  }
  std::mutex mutex;
  testing::RunRanks(data, [&](Training& training) {
    std::vector<StepResult> results;
    for (int64_t step = 0; step < data.spec.steps; ++step) results.push_back(testing::Step(training, step));
    const std::lock_guard lock(mutex);
    for (const ShardSlice& s : training.shard.slices) {
      std::ranges::copy(training.optimizer->Master(s), trained.master[s.parameter].begin() + s.begin);
      std::ranges::copy(training.optimizer->Moment(s), trained.moment[s.parameter].begin() + s.begin);
    }
    for (const WeightSlice& s : training.weights->Held()) {
      for (int64_t i = 0; i < s.values.elems; ++i) {
        trained.weight[s.parameter][s.begin + i] =
            s.values.dtype == DType::kF32 ? static_cast<const float*>(s.values.data)[i]
                                          : kernels::ToFloat(static_cast<const kernels::BFloat16*>(s.values.data)[i]);
      }
    }
    trained.losses.clear(), trained.norms.clear(), trained.skipped.clear();
    for (const StepResult& result : results) {
      trained.losses.push_back(result.loss);
      trained.norms.push_back(result.gradient_norm);
      trained.skipped.push_back(result.skipped);
    }
    trained.num_updates = training.num_updates;
  });
  return trained;
}

std::string FirstDifference(const Trained& a, const Trained& b) {
  if (a.losses != b.losses) return "loss";
  if (a.norms != b.norms) return "norm";
  for (size_t p = 0; p < a.master.size(); ++p) {
    if (a.master[p] != b.master[p]) return "master " + std::to_string(p);
    if (a.moment[p] != b.moment[p]) return "moment " + std::to_string(p);
    if (a.weight[p] != b.weight[p]) return "weight " + std::to_string(p);
  }
  return "";
}

class RealStepTest : public ::testing::TestWithParam<contract::OptimizerKind> {};
INSTANTIATE_TEST_SUITE_P(Optimizers, RealStepTest,
                         ::testing::Values(contract::OptimizerKind::kAdamW, contract::OptimizerKind::kSgd,
                                           contract::OptimizerKind::kAdam, contract::OptimizerKind::kLion,
                                           contract::OptimizerKind::kLamb));

TEST_P(RealStepTest, EveryZeroStageGivesTheSameBits) {
  for (const DType storage : {DType::kF32, DType::kBF16}) {
    for (const auto& [degree, accumulation] : {std::pair{2, 1}, std::pair{3, 1}, std::pair{4, 3}}) {
      Layout layout{.data_degree = degree, .zero_stage = 0, .accumulation = accumulation, .storage = storage};
      const Trained whole = Train(MakeRealCase(layout, GetParam()));
      EXPECT_GT(whole.norms[0], 0.5) << "clipping is active";
      // Stages 2 and 3 add micro-batches after the sum over ranks: with accumulation another order.
      for (const int64_t stage : accumulation == 1 ? std::vector<int64_t>{1, 2, 3} : std::vector<int64_t>{1}) {
        for (const int64_t bucket_elems : {int64_t{1}, int64_t{300}, testing::kNoLimit}) {
          layout.zero_stage = stage;
          layout.bucket_elems = bucket_elems;
          layout.limits.persistence_threshold_elems = 20;
          EXPECT_EQ(FirstDifference(Train(MakeRealCase(layout, GetParam())), whole), "") << testing::Text(layout);
        }
      }
    }
  }
}

TEST_P(RealStepTest, RanksAndMicroBatchesChangeNothingBeyondRounding) {
  const Trained one = Train(MakeRealCase({}, GetParam()));
  for (const Layout& layout : {Layout{2, 0, 1}, Layout{1, 0, 3}, Layout{3, 2, 2}, Layout{4, 3, 3}}) {
    const Trained other = Train(MakeRealCase(layout, GetParam()));
    for (int64_t step = 0; step < testing::kSteps; ++step) {
      EXPECT_NEAR(other.losses[step], one.losses[step], 1e-4 * one.losses[step]) << testing::Text(layout);
      EXPECT_NEAR(other.norms[step], one.norms[step], 1e-3 * one.norms[step]) << testing::Text(layout);
    }
    EXPECT_NEAR(other.losses[0], one.losses[0], 1e-6 * one.losses[0]) << testing::Text(layout);
    EXPECT_NEAR(other.norms[0], one.norms[0], 1e-5 * one.norms[0]) << testing::Text(layout);
  }
}

TEST(RealStep, ClippingScalesTheUpdateByTheGlobalNorm) {
  contract::CaseData data = MakeRealCase({.data_degree = 2, .zero_stage = 2}, contract::OptimizerKind::kSgd);
  data.spec.steps = 1;
  data.spec.config.params.momentum = 0.5;  // its buffer is the clipped gradient in the first step
  data.spec.config.params.weight_decay = 0;
  data.spec.config.gradient_clipping = 0;
  const Trained free = Train(data);
  data.spec.config.gradient_clipping = 0.5;
  const Trained clipped = Train(data);
  EXPECT_EQ(clipped.norms, free.norms) << "reported before clipping";
  const double factor = 0.5 / (free.norms[0] + 1e-6);
  ASSERT_LT(factor, 0.9);
  for (size_t p = 0; p < free.moment.size(); ++p) {
    for (size_t i = 0; i < free.moment[p].size(); ++i) {
      ASSERT_NEAR(clipped.moment[p][i], factor * free.moment[p][i], 1e-6 * std::abs(free.moment[p][i]));
    }
  }
}

// As above, but the matrices of MLPs are exempt, and the factor is that of the norm of all else.
TEST(RealStep, AnExemptGroupIsNeitherClippedNorCounted) {
  for (const int64_t stage : {0, 1, 2, 3}) {
    contract::CaseData data = testing::MakeRealCase({.data_degree = 3, .zero_stage = stage, .bucket_elems = 200},
                                                    {.clipping = 0, .frozen = {"layers.1.mlp.up.weight"}});
    data.spec.steps = 1;
    const auto is_exempt = [](const contract::ParameterSpec& p) {
      return p.name.find(".mlp.") != std::string::npos && p.name.ends_with(".weight");
    };
    data.spec.config.groups.push_back({.match = "layers.*.mlp.*.weight", .lr = {}, .weight_decay = {}, .clip = false});
    const Trained free = Train(data);
    double squares = 0;  // of gradients, which are ten times the moments
    for (const contract::ParameterSpec& p : data.parameters) {
      if (p.frozen || is_exempt(p)) continue;
      for (const double m : free.moment[p.tensor_id]) squares += 100 * m * m;
    }
    EXPECT_NEAR(free.norms[0], std::sqrt(squares), 1e-6 * free.norms[0]);
    data.spec.config.gradient_clipping = 0.25;
    const double factor = 0.25 / (free.norms[0] + 1e-6);
    ASSERT_LT(factor, 0.9);
    const Trained clipped = Train(data);
    EXPECT_EQ(clipped.norms, free.norms);
    int num_exempt = 0;
    for (const contract::ParameterSpec& p : data.parameters) {
      if (p.frozen) continue;
      num_exempt += is_exempt(p) ? 1 : 0;
      for (int64_t i = 0; i < p.numel(); ++i) {
        const double expected = (is_exempt(p) ? 1 : factor) * free.moment[p.tensor_id][i];
        ASSERT_NEAR(clipped.moment[p.tensor_id][i], expected, 1e-6 * std::abs(expected))
            << p.name << " stage " << stage;
      }
    }
    EXPECT_EQ(num_exempt, 3);
  }
}

// Whether elements i and j of a parameter are of one unit.
bool AreOfOneUnit(const contract::ParameterSpec& p, int64_t i, int64_t j) {
  if (p.is_vector) return true;
  const bool is_by_rows =
      p.name == "embed.weight" || p.name == "pos.weight" || p.name == "head.weight" || p.name == "unused.weight";
  return is_by_rows ? i / p.cols == j / p.cols : i % p.cols == j % p.cols;
}

// In the first update a moment is a tenth of the clipped gradient. Biases are exempt.
TEST(RealStep, UnitsAreClippedByTheirOwnNormsAndThoseOfTheirWeightsBeforeTheUpdate) {
  for (const int64_t stage : {0, 1, 2, 3}) {
    testing::RealOptions options{.clipping = 0, .tied_head = false, .frozen = {"layers.1.mlp.up.weight"}};
    const Layout layout{.data_degree = 3, .zero_stage = stage, .bucket_elems = 200};
    contract::CaseData data = testing::MakeRealCase(layout, options);
    data.spec.steps = 1;
    const Trained free = Train(data);
    options.adaptive_clipping = testing::kUnitClipping;
    data.spec.config = testing::MakeRealCase(layout, options).spec.config;
    data.spec.config.groups[0].clip = false;
    const Trained clipped = Train(data);
    int num_scaled = 0, num_kept = 0, num_by_eps = 0;
    for (const contract::ParameterSpec& p : data.parameters) {
      if (p.frozen) continue;
      for (int64_t i = 0; i < p.numel(); ++i) {
        double g = 0, w = 0;
        for (int64_t j = 0; j < p.numel(); ++j) {
          if (!AreOfOneUnit(p, i, j)) continue;
          g += std::pow(10.0 * free.moment[p.tensor_id][j], 2);
          w += std::pow(data.real_state[p.tensor_id].master[j], 2.0);
        }
        const double limit = 0.02 * std::max(std::sqrt(w), 0.05);
        const bool is_scaled = !p.name.ends_with(".bias") && std::sqrt(g) > limit;
        ++(is_scaled ? num_scaled : num_kept);
        num_by_eps += is_scaled && std::sqrt(w) < 0.05 ? 1 : 0;
        const double expected = (is_scaled ? limit / std::sqrt(g) : 1) * free.moment[p.tensor_id][i];
        ASSERT_NEAR(clipped.moment[p.tensor_id][i], expected, 1e-6 * std::abs(expected)) << p.name << " " << stage;
      }
    }
    EXPECT_GT(num_scaled, 100);
    EXPECT_GT(num_kept, 100);
    EXPECT_GT(num_by_eps, 0);
    double squares = 0;  // the norm is reported before clipping, without what is exempt
    for (const contract::ParameterSpec& p : data.parameters) {
      if (p.frozen || p.name.ends_with(".bias")) continue;
      for (const double m : free.moment[p.tensor_id]) squares += 100 * m * m;
    }
    EXPECT_NEAR(clipped.norms[0], std::sqrt(squares), 1e-6 * clipped.norms[0]);
  }
}

TEST_P(RealStepTest, AGradientThatIsNotFiniteSkipsTheStepOnAllRanks) {
  for (const int64_t stage : {0, 1, 2, 3}) {
    contract::CaseData data = MakeRealCase({.data_degree = 3, .zero_stage = stage}, GetParam());
    data.real_state[4].master[7] = INFINITY;  // qkv of the first layer
    if (stage % 2 == 1) data.spec.config.groups.push_back({.match = "*", .lr = {}, .weight_decay = {}, .clip = false});
    const Trained trained = Train(data);
    EXPECT_EQ(trained.skipped, std::vector<bool>(testing::kSteps, true));
    EXPECT_EQ(trained.num_updates, 0);
    for (size_t p = 0; p < trained.master.size(); ++p) {
      EXPECT_EQ(trained.master[p], data.real_state[p].master);
      EXPECT_EQ(trained.weight[p], data.real_state[p].master);
      EXPECT_EQ(trained.moment[p], data.real_state[p].moment);
    }
  }
}

TEST(RealStep, ANewNumberIsCountedFromTheUpdatesThatWereMadeBefore) {
  contract::CaseData data = MakeRealCase({}, contract::OptimizerKind::kAdamW);
  data.num_updates = 5;
  EXPECT_EQ(Train(data).num_updates, 5 + testing::kSteps);
}

}  // namespace
}  // namespace plumbline::optimized
