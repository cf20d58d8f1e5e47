// SPDX-License-Identifier: Apache-2.0
// Optimizers of the real families on shards against docs/semantics.md in double, several updates long, from the start
// and from given moments, with groups, a schedule and clipping; the same bits for every number of shards; and the norm
// over ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "conformance/contract/batch_source.h"
#include "optimized/backend/cpu_backend.h"
#include "optimized/backend/storage_types.h"
#include "optimized/comm/thread_communicator.h"
#include "optimized/engine/gradient_norm.h"
#include "optimized/engine/sharded_optimizer.h"
#include "optimized/engine/unit_clipping.h"
#include "optimized/optimizer/parameter_groups.h"
#include "optimized/partition/bucket_plan.h"

namespace plumbline::optimized {
namespace {

using contract::DType;

constexpr int64_t kUpdates = 4;
constexpr double kMinRatio = 0.03, kMaxRatio = 0.5;  // of LAMB

struct Kind {
  contract::OptimizerKind optimizer;
  double momentum = 0;
  bool nesterov = false;
  int64_t updates_before = 0;  // with moments that are not 0
};

void FillMoments(std::vector<float>& moments, double low, int64_t parameter) {
  for (size_t i = 0; i < moments.size(); ++i) {
    moments[i] =
        static_cast<float>(low + 0.4 + 0.4 * std::cos(static_cast<double>(i) * 5 + static_cast<double>(parameter)));
  }
}

// Nothing has its default.
contract::CaseData MakeCase(const Kind& kind, DType storage) {
  contract::CaseData data;
  const contract::Gpt2Spec spec{
      {.layers = 1, .width = 6, .heads = 2, .positions = 5, .hidden = 7, .vocab = 11, .unused = true, .frozen = {}}};
  data.spec.model = spec;
  contract::RunConfig& config = data.spec.config;
  config.optimizer = kind.optimizer;
  config.storage = storage;
  config.params.lr = 0.01;
  config.params.beta1 = 0.8;
  config.params.beta2 = 0.95;
  config.params.eps = 1e-4;
  config.params.momentum = kind.momentum;
  config.params.nesterov = kind.nesterov;
  config.params.max_coeff = kMaxRatio;
  config.params.min_coeff = kMinRatio;
  config.params.weight_decay = 0.1;
  config.groups = {{"*.bias", 0.02, 0.0}, {"*norm*", std::nullopt, std::nullopt, contract::BetaPair{0.6, 0.9}, false}};
  config.schedule = {contract::Schedule::Kind::kWarmup, 0.001, 0.01, 4, true};
  data.parameters = contract::Parameters(data.spec.model);
  data.real_state = contract::MakeInitialRealState(spec, config, 5);
  data.real_state[3].master.assign(6, 0);  // layers.0.norm1.bias: LAMB has no ratio for it
  data.num_updates = kind.updates_before;
  if (kind.updates_before == 0) return data;
  for (const contract::ParameterSpec& p : data.parameters) {
    FillMoments(data.real_state[p.tensor_id].moment, -0.4, p.tensor_id);
    FillMoments(data.real_state[p.tensor_id].second_moment, 0.1, p.tensor_id);
  }
  return data;
}

// The whole gradient of an update, by canonical index. The scale is that of clipping.
using Gradients = std::vector<std::vector<float>>;
Gradients MakeGradients(const contract::CaseData& data, int64_t update) {
  Gradients gradients;
  for (const contract::ParameterSpec& p : data.parameters) {
    gradients.emplace_back();
    for (int64_t i = 0; i < p.numel(); ++i) {
      gradients.back().push_back(static_cast<float>(std::sin(1.0 + i * 7 + p.tensor_id * 3 + update * 11)));
    }
  }
  return gradients;
}
double ScaleOf(int64_t update) { return update % 2 == 0 ? 1 : 0.37; }
// A step was skipped before the third update: the schedule is one ahead.
int64_t StepOf(int64_t update) { return update < 2 ? update : update + 1; }

// Master, moments and weights, whole, by canonical index.
struct State {
  std::vector<std::vector<double>> master, moment, second_moment, weight;
  friend bool operator==(const State&, const State&) = default;
};

void CopyShard(const ShardedOptimizer& optimizer, const ShardPlan& shard, const FlatBuffer& weights, DType storage,
               State& state) {
  for (const ShardSlice& s : shard.slices) {
    for (int64_t i = 0; i < s.elems(); ++i) {
      state.master[s.parameter][s.begin + i] = optimizer.Master(s)[i];
      if (optimizer.has_moment()) state.moment[s.parameter][s.begin + i] = optimizer.Moment(s)[i];
      if (optimizer.has_second_moment()) state.second_moment[s.parameter][s.begin + i] = optimizer.SecondMoment(s)[i];
      state.weight[s.parameter][s.begin + i] = VisitStorage(storage, [&](auto type) {
        return kernels::ToFloat(weights.Span<decltype(type)>(s.flat_offset, s.elems())[i]);
      });
    }
  }
}

// Of one rank.
void TrainShard(const contract::CaseData& data, const BucketPlan& buckets, const ShardPlan& shard,
                Communicator* communicator, State& state, std::mutex& mutex) {
  const auto backend = MakeCpuBackend();
  const auto optimizer = MakeRealOptimizer(data, shard, {communicator, std::chrono::seconds(20)}, *backend);
  FlatBuffer weights(*backend, buckets.total_elems, data.spec.config.storage, MemoryCategory::kWeights);
  for (int64_t update = 0; update < kUpdates; ++update) {
    if (StepOf(update) != update && StepOf(update - 1) == update - 1) optimizer->Skip();
    const Gradients gradients = MakeGradients(data, update);
    optimizer->Step(
        {StepOf(update), data.num_updates + update + 1, ScaleOf(update)},
        [&](const ShardSlice& s) { return std::span(gradients[s.parameter]).subspan(s.begin, s.elems()); },
        [&](const ShardSlice& s) { return weights.Range(s.flat_offset, s.elems()); });
  }
  const std::lock_guard lock(mutex);
  CopyShard(*optimizer, shard, weights, data.spec.config.storage, state);
}

State RunShards(const contract::CaseData& data, int64_t degree) {
  std::vector<int64_t> numels;
  State state;
  for (const contract::ParameterSpec& p : data.parameters) {
    numels.push_back(p.numel());
    for (auto* quantity : {&state.master, &state.moment, &state.second_moment, &state.weight}) {
      quantity->emplace_back(p.numel(), NAN);
    }
  }
  const BucketPlan buckets = PlanBuckets(numels, 150, degree);
  const auto ranks = MakeThreadCommunicators(degree, Progress::kLastArriver);
  std::mutex mutex;
  std::vector<std::jthread> threads;
  for (int64_t rank = 0; rank < degree; ++rank) {
    threads.emplace_back([&, rank] {
      const ShardPlan shard = PlanShard(buckets, degree, rank);
      TrainShard(data, buckets, shard, degree > 1 ? ranks[rank].get() : nullptr, state, mutex);
    });
  }
  threads.clear();
  return state;
}

// docs/semantics.md, element by element, but for LAMB, whose ratio is the parameter's.
// `ratios` counts LAMB's by what they are.
std::vector<double> NaiveMaster(const contract::CaseData& data, const contract::ParameterSpec& parameter,
                                std::map<std::string, int>& ratios) {
  using contract::OptimizerKind;
  const contract::RunConfig& config = data.spec.config;
  const bool is_bias = parameter.name.ends_with(".bias");
  const double decay = is_bias ? 0 : 0.1;
  const bool has_own_betas = !is_bias && parameter.name.find("norm") != std::string::npos;
  const double beta1 = has_own_betas ? 0.6 : 0.8, beta2 = has_own_betas ? 0.9 : 0.95;
  const contract::RealParameterState& state = data.real_state[parameter.tensor_id];
  std::vector<double> p(state.master.begin(), state.master.end());
  std::vector<double> m(state.moment.begin(), state.moment.end()),
      v(state.second_moment.begin(), state.second_moment.end());
  for (int64_t update = 0; update < kUpdates; ++update) {
    const std::vector<float> gradient = MakeGradients(data, update)[parameter.tensor_id];
    const double k = std::max<double>(0, static_cast<double>(StepOf(update)) - 1);
    const double scheduled = 0.001 + (0.01 - 0.001) * std::min(1.0, k / 4);
    const double lr = scheduled * (is_bias ? 2 : 1);
    const int64_t number = data.num_updates + update + 1;
    const auto t = static_cast<double>(number);
    std::vector<double> directions;
    double p_squares = 0, direction_squares = 0;
    for (size_t i = 0; i < p.size(); ++i) {
      double g = gradient[i] * (has_own_betas ? 1 : ScaleOf(update));  // that group is exempt from clipping
      if (config.optimizer == OptimizerKind::kSgd) {
        g += decay * p[i];
        if (config.params.momentum > 0) m[i] = number > 1 ? config.params.momentum * m[i] + g : g;
        directions.push_back(config.params.nesterov       ? g + config.params.momentum * m[i]
                             : config.params.momentum > 0 ? m[i]
                                                          : g);
        continue;
      }
      if (config.optimizer == OptimizerKind::kLion) {
        const double mixed = beta1 * m[i] + (1 - beta1) * g;
        m[i] = beta2 * m[i] + (1 - beta2) * g;
        directions.push_back(decay * p[i] + (mixed > 0 ? 1 : mixed < 0 ? -1 : 0));
        continue;
      }
      if (config.optimizer == OptimizerKind::kAdam) g += decay * p[i];
      m[i] = beta1 * m[i] + (1 - beta1) * g;
      v[i] = beta2 * v[i] + (1 - beta2) * g * g;
      const double own = m[i] / (1 - std::pow(beta1, t)) / (std::sqrt(v[i] / (1 - std::pow(beta2, t))) + 1e-4);
      directions.push_back(own + (config.optimizer == OptimizerKind::kAdam ? 0 : decay * p[i]));
      p_squares += p[i] * p[i];
      direction_squares += directions[i] * directions[i];
    }
    double ratio = 1;
    if (config.optimizer == OptimizerKind::kLamb) {
      const double own = std::sqrt(p_squares / direction_squares);
      ratio = p_squares == 0 ? 1 : std::max(kMinRatio, std::min(kMaxRatio, own));
      ++ratios[p_squares == 0 ? "one" : own > kMaxRatio ? "max" : own < kMinRatio ? "min" : "own"];
    }
    for (size_t i = 0; i < p.size(); ++i) p[i] -= lr * ratio * directions[i];
  }
  return p;
}

class RealOptimizerTest : public ::testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(
    Kinds, RealOptimizerTest,
    ::testing::Values(Kind{contract::OptimizerKind::kAdamW}, Kind{contract::OptimizerKind::kAdamW, 0, false, 6},
                      Kind{contract::OptimizerKind::kAdam}, Kind{contract::OptimizerKind::kAdam, 0, false, 6},
                      Kind{contract::OptimizerKind::kLamb}, Kind{contract::OptimizerKind::kLamb, 0, false, 6},
                      Kind{contract::OptimizerKind::kLion}, Kind{contract::OptimizerKind::kLion, 0, false, 6},
                      Kind{contract::OptimizerKind::kSgd}, Kind{contract::OptimizerKind::kSgd, 0.9},
                      Kind{contract::OptimizerKind::kSgd, 0.7, true},
                      Kind{contract::OptimizerKind::kSgd, 0.7, true, 6}));

TEST_P(RealOptimizerTest, FollowsTheTextOverSeveralUpdatesGroupsAndStepsOfTheSchedule) {
  const contract::CaseData data = MakeCase(GetParam(), DType::kF32);
  const State state = RunShards(data, 1);
  std::map<std::string, int> ratios;
  for (const contract::ParameterSpec& p : data.parameters) {
    const std::vector<double> master = NaiveMaster(data, p, ratios);
    for (int64_t i = 0; i < p.numel(); i += 3) {
      // Four updates of at most 0.02 each, with some ten roundings, and the roundings of the master itself.
      EXPECT_NEAR(state.master[p.tensor_id][i], master[i], 0x1p-24 * (4 * std::abs(master[i]) + 40 * 4 * 0.02))
          << p.name;
      EXPECT_NE(state.master[p.tensor_id][i], data.real_state[p.tensor_id].master[i]) << p.name;
    }
  }
  EXPECT_EQ(state.weight, state.master);
  if (GetParam().optimizer == contract::OptimizerKind::kLamb) {
    for (const char* kind : {"one", "max", "min", "own"}) EXPECT_GT(ratios[kind], 0) << kind;
  }
}

TEST_P(RealOptimizerTest, EveryNumberOfShardsGivesTheSameBits) {
  for (const DType storage : {DType::kF32, DType::kBF16, DType::kF16}) {
    const contract::CaseData data = MakeCase(GetParam(), storage);
    const auto bits = [](const State& state) {
      std::vector<uint64_t> all;
      for (const auto* quantity : {&state.master, &state.moment, &state.second_moment, &state.weight}) {
        for (const std::vector<double>& values : *quantity) {
          for (const double value : values) all.push_back(std::isnan(value) ? 0 : std::bit_cast<uint64_t>(value));
        }
      }
      return all;
    };
    const std::vector<uint64_t> whole = bits(RunShards(data, 1));
    for (const int64_t degree : {2, 3, 5}) EXPECT_EQ(bits(RunShards(data, degree)), whole) << degree;
  }
}

// An embedding of 2400 elements is clipped in more than one part.
TEST_P(RealOptimizerTest, ClippingByUnitsIsTheUpdateOfAGradientThatWasClippedBefore) {
  contract::CaseData data = MakeCase(GetParam(), DType::kF32);
  data.spec.model.gpt2().vocab = 400;
  data.parameters = contract::Parameters(data.spec.model);
  data.real_state = contract::MakeInitialRealState(data.spec.model.gpt2(), data.spec.config, 5);
  std::vector<int64_t> numels;
  std::vector<UnitForm> forms;
  for (const contract::ParameterSpec& p : data.parameters) {
    numels.push_back(p.numel());
    forms.push_back(p.name == "embed.weight" ? UnitForm{2400, 400, 6} : UnitForm{p.numel(), 1, p.numel()});
  }
  const ShardPlan shard = PlanShard(PlanBuckets(numels, 150, 1), 1, 0);
  const auto backend = MakeCpuBackend();
  const auto at_once = MakeRealOptimizer(data, shard, {}, *backend),
             in_turn = MakeRealOptimizer(data, shard, {}, *backend);
  Gradients gradients = MakeGradients(data, 1);
  const auto gradient = [&](const ShardSlice& s) {
    return std::span<const float>(gradients[s.parameter]).subspan(s.begin, s.elems());
  };
  FlatBuffer weights(*backend, shard.total_elems, DType::kF32, MemoryCategory::kWeights);
  const auto weight = [&](const ShardSlice& s) { return weights.Range(s.shard_offset, s.elems()); };
  UnitClipping units({.kind = contract::AdaptiveClipping::Kind::kUnit, .ratio = 0.1, .eps = 0.01}, forms, shard, {});
  units.Compute(gradient, [&](const ShardSlice& s) { return at_once->Master(s); });
  at_once->Step({.step = 3, .t = 3, .units = &units}, gradient, weight);
  const std::vector<float> embedding = gradients[0];
  for (const ShardSlice& s : shard.slices) {
    const bool is_exempt = data.parameters[s.parameter].name.find("norm") != std::string::npos &&
                           !data.parameters[s.parameter].name.ends_with(".bias");
    if (!is_exempt) units.Clip(s.parameter, s.begin, gradient(s), gradients[s.parameter]);
  }
  ASSERT_NE(gradients[0], embedding);
  in_turn->Step({.step = 3, .t = 3}, gradient, weight);
  for (const ShardSlice& s : shard.slices) {
    EXPECT_TRUE(std::ranges::equal(at_once->Master(s), in_turn->Master(s))) << data.parameters[s.parameter].name;
    if (!at_once->has_moment()) continue;
    EXPECT_TRUE(std::ranges::equal(at_once->Moment(s), in_turn->Moment(s))) << data.parameters[s.parameter].name;
  }
}

// The result of every rank, with gradients in `degree` shards.
std::vector<GradientNorm::Result> Norms(const Gradients& gradients, int64_t degree, std::vector<bool> exempt = {}) {
  exempt.resize(gradients.size());
  std::vector<int64_t> numels;
  for (const auto& gradient : gradients) numels.push_back(static_cast<int64_t>(gradient.size()));
  const BucketPlan buckets = PlanBuckets(numels, 150, degree);
  const auto ranks = MakeThreadCommunicators(degree, Progress::kLastArriver);
  std::vector<GradientNorm::Result> results(degree);
  {
    std::vector<std::jthread> threads;
    for (int64_t rank = 0; rank < degree; ++rank) {
      threads.emplace_back([&, rank] {
        const ShardPlan shard = PlanShard(buckets, degree, rank);
        GradientNorm norm({shard, exempt, {degree > 1 ? ranks[rank].get() : nullptr, std::chrono::seconds(20)}});
        const auto of = [&](const ShardSlice& s) {
          return std::span(gradients[s.parameter]).subspan(s.begin, s.elems());
        };
        norm.Compute(of);
        results[rank] = norm.Compute(of);  // begins anew each time
      });
    }
  }
  return results;
}

TEST(GradientNorm, IsTheSameBitsOnEveryRankForEveryNumberOfShards) {
  const contract::CaseData data = MakeCase({contract::OptimizerKind::kSgd}, DType::kF32);
  Gradients gradients = MakeGradients(data, 1);
  gradients[0][5] = 1e18f;  // beside 1e-18: sums in double would depend on their order
  gradients[3][1] = 1e-18f;
  double sum = 0;
  for (const auto& gradient : gradients) {
    for (const double g : gradient) sum += g * g;
  }
  const GradientNorm::Result whole = Norms(gradients, 1)[0];
  EXPECT_NEAR(whole.norm, std::sqrt(sum), 1e-14 * whole.norm);
  for (const int64_t degree : {2, 3, 4, 7}) {
    for (const GradientNorm::Result& result : Norms(gradients, degree)) {
      EXPECT_EQ(std::bit_cast<uint64_t>(result.norm), std::bit_cast<uint64_t>(whole.norm)) << degree;
      EXPECT_TRUE(result.all_finite);
    }
  }
}

TEST(GradientNorm, ANumberThatIsNotFiniteOnOneRankIsSeenByAll) {
  const contract::CaseData data = MakeCase({contract::OptimizerKind::kSgd}, DType::kF32);
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    for (const int64_t parameter : {int64_t{0}, static_cast<int64_t>(data.parameters.size()) - 1}) {
      Gradients gradients = MakeGradients(data, 1);
      gradients[parameter].back() = bad;
      for (const int64_t degree : {1, 2, 5}) {
        for (const GradientNorm::Result& result : Norms(gradients, degree)) EXPECT_FALSE(result.all_finite);
      }
    }
  }
}

TEST(GradientNorm, WhatIsExemptIsInNoNormButMustBeFinite) {
  for (const int64_t degree : {1, 2, 5}) {
    Gradients gradients = {std::vector<float>(70, 0), std::vector<float>(300, 7), {3, 0}, {0, -4, 0}};
    gradients[0][40] = 12;
    const std::vector<bool> exempt = {false, true, false, false};
    for (const GradientNorm::Result& result : Norms(gradients, degree, exempt)) {
      EXPECT_EQ(result.norm, 13);
      EXPECT_TRUE(result.all_finite);
    }
    gradients[1][299] = INFINITY;
    for (const GradientNorm::Result& result : Norms(gradients, degree, exempt)) {
      EXPECT_EQ(result.norm, INFINITY);
      EXPECT_FALSE(result.all_finite);
    }
    gradients[1][100] = NAN;
    for (const GradientNorm::Result& result : Norms(gradients, degree, exempt)) {
      EXPECT_TRUE(std::isnan(result.norm));
      EXPECT_FALSE(result.all_finite);
    }
    for (const GradientNorm::Result& result : Norms({{1}, {2}}, degree, {true, true})) EXPECT_EQ(result.norm, 0);
  }
}

}  // namespace
}  // namespace plumbline::optimized
