// SPDX-License-Identifier: Apache-2.0
// CheckUpdate and CheckSkipped against updates that are written here a second time, in fp32 in several orders of
// evaluation (all must pass), and against copies of them with one mistake each (all must fail, under the right name).
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <iostream>
#include <limits>

#include "conformance/oracle/real_check.h"
#include "conformance/oracle/testing/example_update.h"
#include "conformance/oracle/testing/odd_numbers.h"
#include "conformance/oracle/update_formula.h"

namespace plumbline::conformance {
namespace {

using contract::Case;
using contract::DType;
using contract::OptimizerKind;
using contract::RealParameterState;
using contract::TensorKind;
using reports::CheckOutcome;

RealResult Check(const ExampleUpdate& update) { return CheckUpdate(update.spec, update.start(), update.after); }

using Configure = void (*)(ExampleUpdate&);

ExampleUpdate Make(Configure configure, uint64_t seed = 1) {
  ExampleUpdate update;
  configure(update);
  MakeBefore(update, seed);
  return update;
}

void Plain(ExampleUpdate&) {}
void FirstStep(ExampleUpdate& update) { update.num_updates = 0; }
void Sgd(ExampleUpdate& update) { update.spec.config.optimizer = OptimizerKind::kSgd; }
void Momentum(ExampleUpdate& update) {
  Sgd(update);
  update.spec.config.params.momentum = 0.9;
}
void FirstMomentum(ExampleUpdate& update) {
  Momentum(update);
  update.num_updates = 0;
}
void Clipped(ExampleUpdate& update) { update.spec.config.gradient_clipping = 0.01; }
void NotClipped(ExampleUpdate& update) { update.spec.config.gradient_clipping = 1e6; }
void Bf16(ExampleUpdate& update) { update.spec.config.storage = DType::kBF16; }
void Groups(ExampleUpdate& update) {
  update.spec.config.groups = {{"*.bias", std::nullopt, 0.0}, {"*norm*", 3e-4, 0.0}, {"embed.*", 2e-3, std::nullopt}};
}
void WarmupInGroups(ExampleUpdate& update) {
  Groups(update);
  update.spec.config.schedule = {contract::Schedule::Kind::kWarmup, 1e-5, 1e-3, 20, false};
}
// The betas of each step are others than the config's.
void Cycle(ExampleUpdate& update) {
  contract::Schedule& schedule = update.spec.config.schedule;
  schedule.kind = contract::Schedule::Kind::kOneCycle;
  schedule.cycle.min_lr = 1e-4;
  schedule.cycle.max_lr = 1e-3;
  schedule.cycle.first_steps = 7;
  schedule.cycle.second_steps = 5;
  schedule.cycle.min_momentum = 0.5;
}
void SmallEps(ExampleUpdate& update) { update.spec.config.params.eps = 1e-5; }
void SgdClipped(ExampleUpdate& update) {
  Momentum(update);
  Clipped(update);
}

void Adam(ExampleUpdate& update) {
  update.spec.config.optimizer = OptimizerKind::kAdam;
  update.spec.config.params.weight_decay = 0.3;
}
void Lion(ExampleUpdate& update) {
  update.spec.config.optimizer = OptimizerKind::kLion;
  update.spec.config.params.beta2 = 0.6;
}
// Ratios of the example are 0.02 to 0.6, so that either limit is met.
void Lamb(ExampleUpdate& update) {
  update.spec.config.optimizer = OptimizerKind::kLamb;
  update.spec.config.params.weight_decay = 0.3;
  update.spec.config.params.min_coeff = 0.05;
  update.spec.config.params.max_coeff = 0.3;
}
void Nesterov(ExampleUpdate& update) {
  Momentum(update);
  update.spec.config.params.nesterov = true;
}
void FirstNesterov(ExampleUpdate& update) {
  Nesterov(update);
  update.num_updates = 0;
}
void BetasOfGroups(ExampleUpdate& update) {
  update.spec.config.groups = {{"*.bias", std::nullopt, std::nullopt, contract::BetaPair{0.5, 0.7}, true}};
}
void Exempt(ExampleUpdate& update) {
  Clipped(update);
  update.spec.config.groups = {{"*.mlp.*", std::nullopt, std::nullopt, std::nullopt, false}};
}
void Units(ExampleUpdate& update) {
  update.spec.config.adaptive_clipping.kind = contract::AdaptiveClipping::Kind::kUnit;
  update.spec.config.adaptive_clipping.ratio = 0.5;
  update.spec.config.adaptive_clipping.eps = 0.1;
}
void ExemptUnits(ExampleUpdate& update) {
  Units(update);
  update.spec.config.groups = {{"*.mlp.*", std::nullopt, std::nullopt, std::nullopt, false}};
}
void History(ExampleUpdate& update) {
  update.spec.config.adaptive_clipping.kind = contract::AdaptiveClipping::Kind::kHistory;
  update.spec.config.adaptive_clipping.deviations = 1.5;
  update.spec.config.adaptive_clipping.warmup_steps = 5;
  update.norm_history = {5, 0.01, 1e-5};  // far below the example's norms
}
void HistoryWarmsUp(ExampleUpdate& update) {
  History(update);
  update.norm_history.count = 4;
}

TEST(CheckUpdate, PassesEveryLegalOrderOfEvaluation) {
  double nearest = 0;
  for (Configure configure :
       {Plain,  FirstStep,      Sgd,           Momentum,   FirstMomentum, Clipped,     NotClipped, Bf16,
        Groups, Cycle,          SmallEps,      Adam,       Lion,          Lamb,        Nesterov,   Exempt,
        Units,  WarmupInGroups, BetasOfGroups, SgdClipped, FirstNesterov, ExemptUnits, History,    HistoryWarmsUp}) {
    for (int way = 0; way < 64; ++way) {
      ExampleUpdate update = Make(configure, static_cast<uint64_t>(way));
      Engine engine;
      engine.lerp = way & 1;
      engine.fused = way & 2;
      engine.wide = way & 4;
      engine.decay_with_step = way & 8;
      engine.step_size = way & 16;
      engine.powers_by_product = way & 32;
      Execute(engine, update);
      const RealResult result = Check(update);
      ASSERT_EQ(result.check.outcome, CheckOutcome::kPass) << way << ": " << result.check.detail;
      EXPECT_GT(result.check.compared, 2 * 1500);
      const size_t comma = result.check.detail.rfind(", ");
      nearest = std::max(nearest, std::stod(result.check.detail.substr(comma + 2)));
    }
  }
  std::cout << "largest share of a bound: " << nearest << "\n";
  EXPECT_GT(nearest, 0.2);  // or the bounds would be idle
}

struct Mistake {
  const char* title;
  Configure configure;
  Engine engine;
  const char* quantity;
};

TEST(CheckUpdate, FindsEachMistakeUnderTheRightName) {
  const std::vector<Mistake> mistakes = {
      {"O1: t advances twice", Plain, {.t_offset = 1}, "master"},
      {"O1: t of the step before", Plain, {.t_offset = -1}, "master"},
      {"O1: t of SGD's first step", FirstMomentum, {.t_offset = 1}, ""},  // the same where the buffer is zero
      {"O2: epsilon inside the root", Plain, {.eps_inside = true}, "master"},
      {"O3: decay coupled", Plain, {.decay_form = true}, "moment"},
      {"O3: no decay", Plain, {.no_decay = true}, "master"},
      {"O3: no decay in SGD", Momentum, {.no_decay = true}, "moment"},
      {"O3: no decay in plain SGD", Sgd, {.no_decay = true}, "master"},
      {"O4: no first correction", Plain, {.no_first_correction = true}, "master"},
      {"O4: no second correction", Plain, {.no_second_correction = true}, "master"},
      {"O4: no correction in the first step",
       FirstStep,
       {.no_first_correction = true, .no_second_correction = true},
       "master"},
      {"O5: lr and beta swapped", Plain, {.lr_is_beta = true}, "master"},
      {"N1: max for min, crossed", Clipped, {.clip_max = true}, "moment"},
      {"N1: max for min, not crossed", NotClipped, {.clip_max = true}, "moment"},
      {"N2: no clipping", Clipped, {.no_clip = true}, "moment"},
      {"N2: no clipping of momentum", SgdClipped, {.no_clip = true}, "moment"},
      {"first moment from the unclipped gradient", Clipped, {.moment_from_unclipped = true}, "moment"},
      {"P6: weights one step late", Bf16, {.stale_weight = true}, "weight"},
      {"P6: weights one step late, fp32", Plain, {.stale_weight = true}, "weight"},
      {"weights truncated, not rounded", Bf16, {.truncated_weight = true}, "weight"},
      {"P7: nothing is updated", Plain, {.no_update = true}, "moment"},
      {"P7: nothing is updated by SGD", Sgd, {.no_update = true}, "master"},
      {"S2: the first group's lr for all", Groups, {.first_group_lr = true}, "master"},
      {"S2: with warm-up", WarmupInGroups, {.first_group_lr = true}, "master"},
      {"Adam's decay decoupled", Adam, {.decay_decoupled = true}, "moment"},
      {"no decay in Adam", Adam, {.no_decay = true}, "moment"},
      {"betas of groups passed over", BetasOfGroups, {.optimizer_betas = true}, "moment"},
      {"Lion's betas swapped", Lion, {.swapped_betas = true}, "moment"},
      {"no decay in Lion", Lion, {.no_decay = true}, "master"},
      {"plain momentum for Nesterov's", Nesterov, {.no_nesterov = true}, "master"},
      {"no ratio in LAMB", Lamb, {.no_ratio = true}, "master"},
      {"LAMB's norms of a shard", Lamb, {.ratio_of_part = true}, "master"},
      {"LAMB's ratio without limits", Lamb, {.no_ratio_limits = true}, "master"},
      {"no decay in LAMB's direction", Lamb, {.no_direction_decay = true}, "master"},
      {"an exempt group is clipped", Exempt, {.exempt_is_clipped = true}, "moment"},
      {"an exempt group is in the norm", Exempt, {.exempt_in_norm = true}, "gradient_norm"},
      {"an exempt group's units are clipped", ExemptUnits, {.exempt_is_clipped = true}, "moment"},
      {"units are whole tensors", Units, {.whole_units = true}, "moment"},
      {"rows for columns", Units, {.transposed_units = true}, "moment"},
      {"no epsilon of units", Units, {.no_unit_epsilon = true}, "moment"},
      {"a threshold that knows this norm", History, {.threshold_after_update = true}, "moment"},
      {"the norm before clipping in the history", History, {.history_of_unclipped = true}, "norm_history"},
      {"a history that stays", HistoryWarmsUp, {.history_stays = true}, "norm_history"},
      {"no clipping by history", History, {.no_clip = true}, "moment"},
      {"the step uses half of the gradient", Plain, {.gradient_factor = 0.5}, "moment"},
      {"the step uses half of the gradient, SGD", Sgd, {.gradient_factor = 0.5}, "master"},
      {"the step uses 1.0001 of the gradient", Plain, {.gradient_factor = 1.0001}, "moment"},
  };
  for (const Mistake& mistake : mistakes) {
    ExampleUpdate update = Make(mistake.configure);
    Execute(mistake.engine, update);
    const RealResult result = Check(update);
    if (std::string(mistake.quantity).empty()) {
      EXPECT_EQ(result.check.outcome, CheckOutcome::kPass) << mistake.title << result.check.detail;
      continue;
    }
    ASSERT_EQ(result.check.outcome, CheckOutcome::kFail) << mistake.title;
    ASSERT_TRUE(result.divergence) << mistake.title;
    EXPECT_EQ(result.divergence->quantity, mistake.quantity) << mistake.title << ": " << result.check.detail;
    EXPECT_EQ(result.divergence->step, 9);
    const bool is_number =
        result.divergence->quantity == "gradient_norm" || result.divergence->quantity == "norm_history";
    EXPECT_EQ(result.divergence->tensor.empty(), is_number);
  }
}

TEST(CheckUpdate, SeesOnWhichSideOfTheThresholdTheNormIs) {
  for (const auto& [share, crossed] : {std::pair(0.9, true), std::pair(0.9999, true), std::pair(1.0001, false)}) {
    ExampleUpdate update = Make(Plain);
    update.spec.config.gradient_clipping = share * NormOf(update.after);
    Execute({}, update);
    EXPECT_EQ(Check(update).check.outcome, CheckOutcome::kPass) << share << Check(update).check.detail;
    Execute({.no_clip = crossed, .always_clip = !crossed}, update);
    EXPECT_EQ(Check(update).check.outcome, CheckOutcome::kFail) << share;
  }
  // At the threshold both are within rounding.
  for (bool clips : {false, true}) {
    ExampleUpdate update = Make(Plain);
    update.spec.config.gradient_clipping = NormOf(update.after) + 1e-6;
    Execute({.no_clip = !clips, .always_clip = clips}, update);
    EXPECT_EQ(Check(update).check.outcome, CheckOutcome::kPass) << Check(update).check.detail;
  }
}

TEST(CheckUpdate, BoundsTheMasterWeightFarBelowAStep) {
  for (Configure configure : {Plain, FirstStep, Clipped, Bf16}) {
    ExampleUpdate update = Make(configure);
    Execute({}, update);
    UpdateRule rule;
    rule.params = update.spec.config.params;
    rule.t = update.num_updates + 1;
    double largest = 0;
    for (size_t id = 0; id < update.before.size(); ++id) {
      for (size_t i = 0; i < update.after.of(TensorKind::kMoment)[id].size(); ++i) {
        const Bounded next =
            NextMaster(rule, {update.before[id].master[i], 0, 0, 0}, update.after.of(TensorKind::kMoment)[id][i],
                       update.after.of(TensorKind::kSecondMoment)[id][i]);
        largest = std::max(largest, next.bound);
      }
    }
    EXPECT_LT(largest, 0.01 * rule.params.lr);
  }
}

TEST(CheckUpdate, FindsOneWrongElementOfEachQuantityAndNamesTheTensor) {
  for (TensorKind kind : {TensorKind::kMoment, TensorKind::kSecondMoment, TensorKind::kMaster, TensorKind::kWeight}) {
    for (size_t id = 0; id < Make(Plain).before.size(); ++id) {
      ExampleUpdate update = Make(Plain);
      Execute({}, update);
      std::vector<double>& values = update.after.of(kind)[id];
      if (values.empty()) continue;
      values.back() = static_cast<float>(values.back() * (1 + 1e-4) + (kind == TensorKind::kMaster ? 2e-5 : 1e-30));
      // A wrong master weight is not what the weight was rounded from: the weight is judged by the one that is stored.
      if (kind == TensorKind::kMaster) update.after.of(TensorKind::kWeight)[id].back() = values.back();
      const RealResult result = Check(update);
      ASSERT_TRUE(result.divergence) << contract::Name(kind) << " " << id;
      EXPECT_EQ(result.divergence->quantity, contract::Name(kind));
      EXPECT_EQ(result.divergence->tensor, contract::Parameters(update.spec.model)[id].name);
      EXPECT_EQ(result.divergence->num_tensors, 1);
    }
  }
}

TEST(CheckUpdate, NeverPassesWhatIsNotFiniteWhereTheFormulaIs) {
  for (double odd : kNotFinite) {
    for (TensorKind kind : {TensorKind::kMoment, TensorKind::kSecondMoment, TensorKind::kMaster, TensorKind::kWeight}) {
      ExampleUpdate update = Make(Plain);
      Execute({}, update);
      update.after.of(kind)[1][3] = odd;
      ASSERT_TRUE(Check(update).divergence) << odd;
      EXPECT_EQ(Check(update).divergence->quantity, contract::Name(kind)) << odd;
    }
    ExampleUpdate update = Make(Plain);
    Execute({}, update);
    update.after.real.gradient_norm = odd;
    EXPECT_EQ(Check(update).divergence->quantity, "gradient_norm") << odd;
    update.after.real.lr[0] = odd;
    EXPECT_EQ(Check(update).divergence->quantity, "lr") << odd;
  }
}

// A state before that holds NaN or Inf where no gradient reads it: the step is made, and the formulas give NaN or Inf.
TEST(CheckUpdate, DemandsTheFormulasClassWhereItIsNotFinite) {
  constexpr float kInf32 = std::numeric_limits<float>::infinity();
  for (float before : {kInf32, -kInf32, std::numeric_limits<float>::quiet_NaN()}) {
    const auto check = [&](double seen) {
      ExampleUpdate update = Make(Momentum);
      update.before[1].moment[3] = before;
      Execute({}, update);
      update.after.of(TensorKind::kMoment)[1][3] = seen;
      return Check(update);
    };
    ExampleUpdate right = Make(Momentum);
    right.before[1].moment[3] = before;
    Execute({}, right);
    EXPECT_EQ(Check(right).check.outcome, CheckOutcome::kPass) << Check(right).check.detail;
    for (double seen : {kInf, -kInf, kNaN, 0.0, 1.0}) {
      if (seen == before || (std::isnan(seen) && std::isnan(before))) continue;
      ASSERT_TRUE(check(seen).divergence) << before << " and " << seen;
      EXPECT_EQ(check(seen).divergence->quantity, "moment") << before << " and " << seen;
    }
  }
}

// What fp32 cannot hold, or not the square of, is neither right nor wrong; what else is wrong still fails.
TEST(CheckUpdate, IsVacuousWhereTheFormulaLeavesTheRangeOfFp32) {
  const auto check = [](Configure configure, auto change) {
    ExampleUpdate update = Make(configure);
    change(update);
    Execute({}, update);
    for (TensorKind kind : {TensorKind::kMoment, TensorKind::kSecondMoment, TensorKind::kMaster, TensorKind::kWeight}) {
      for (double& value : update.after.of(kind)[1]) value = kInf;
    }
    return Check(update);
  };
  const RealResult lamb = check(Lamb, [](ExampleUpdate& update) { update.before[1].master[3] = 1e30f; });
  EXPECT_EQ(lamb.check.outcome, CheckOutcome::kVacuous) << lamb.check.detail;
  EXPECT_EQ(lamb.check.detail.find("step 9: moment of "), 0u) << lamb.check.detail;
  EXPECT_NE(lamb.check.detail.find(" comes to 2^63 or more"), std::string::npos);
  const RealResult small = check(Lamb, [](ExampleUpdate& update) { update.before[2].master[3] = 1e30f; });
  ASSERT_TRUE(small.divergence) << "of another tensor";
  EXPECT_EQ(small.divergence->tensor, contract::Parameters(ExampleUpdate{}.spec.model)[1].name);

  ExampleUpdate update = Make(Plain);
  update.spec.config.params.lr = 1e29;
  Execute({}, update);
  EXPECT_EQ(Check(update).check.outcome, CheckOutcome::kVacuous) << Check(update).check.detail;
  for (double seen : {kInf, 0.0}) {
    update.after.of(TensorKind::kMaster)[1][3] = seen;
    update.after.of(TensorKind::kWeight)[1][3] = seen;
    EXPECT_EQ(Check(update).check.outcome, CheckOutcome::kVacuous) << seen;
  }
  update.after.of(TensorKind::kSecondMoment)[1][3] *= 1.5;
  EXPECT_EQ(Check(update).divergence->quantity, "second_moment");
}

// Squares of a gradient in fp64 can overflow where the gradient does not; then no norm is right.
TEST(CheckUpdate, AcceptsNoNormOfAGradientWhoseNormIsNotFinite) {
  ExampleUpdate update = Make(Plain);
  Execute({}, update);
  update.after.of(TensorKind::kGradient)[0][0] = 1e200;
  EXPECT_EQ(Check(update).divergence->quantity, "gradient_norm");
}

// A weight is a rounded master weight, bit for bit; everything else is a real number within a bound, which allows
// subnormal numbers to be flushed.
TEST(CheckUpdate, ComparesZerosAndSubnormalNumbersByBitsInWeightsOnly) {
  const auto outcome = [](TensorKind kind, double exact, double seen) {
    ExampleUpdate update = Make(Sgd);
    update.spec.config.params.lr = 0.5;
    update.spec.config.params.weight_decay = 0;
    // In one element the gradient is zero: the master weight stays what it is.
    update.before[1].master[3] = static_cast<float>(exact);
    update.after.of(TensorKind::kGradient)[1][3] = 0;
    Execute({}, update);
    update.after.of(TensorKind::kMaster)[1][3] = update.after.of(TensorKind::kWeight)[1][3] = exact;
    update.after.of(kind)[1][3] = seen;
    if (kind == TensorKind::kMaster) update.after.of(TensorKind::kWeight)[1][3] = seen;
    return Check(update).check.outcome;
  };
  for (const auto& [exact, seen] : {std::pair(0.0, -0.0), std::pair(-0.0, 0.0), std::pair(kSubnormal, 0.0),
                                    std::pair(kSubnormal, -0.0), std::pair(kSubnormal, 2 * kSubnormal)}) {
    EXPECT_EQ(outcome(TensorKind::kMaster, exact, exact), CheckOutcome::kPass);
    EXPECT_EQ(outcome(TensorKind::kMaster, exact, seen), CheckOutcome::kPass) << exact << " and " << seen;
    EXPECT_EQ(outcome(TensorKind::kWeight, exact, seen), CheckOutcome::kFail) << exact << " and " << seen;
  }
}

TEST(CheckUpdate, DemandsTheScheduledLrTheNormAndThatNothingFrozenMoves) {
  ExampleUpdate update = Make(WarmupInGroups);
  Execute({}, update);
  update.after.real.lr[2] *= 1.00001;
  EXPECT_EQ(Check(update).divergence->quantity, "lr");
  Execute({}, update);
  update.after.real.lr.pop_back();
  EXPECT_EQ(Check(update).divergence->quantity, "lr");
  Execute({}, update);
  update.after.real.gradient_norm *= 1.001;
  EXPECT_EQ(Check(update).divergence->quantity, "gradient_norm");
  Execute({}, update);
  update.after.real.skipped = true;
  EXPECT_EQ(Check(update).divergence->quantity, "skipped");
  Execute({}, update);
  const size_t frozen = 8;  // layers.0.norm2.weight
  for (TensorKind kind : {TensorKind::kMaster, TensorKind::kWeight}) {
    double& value = update.after.of(kind)[frozen][11];
    value = std::nextafterf(static_cast<float>(value), 2.0f);
  }
  ASSERT_TRUE(Check(update).divergence);
  EXPECT_EQ(Check(update).divergence->tensor, "layers.0.norm2.weight");
  EXPECT_NE(Check(update).check.detail.find("frozen at"), std::string::npos);
}

// WarmupCosineLR gives step 0 a rate of 0: moments are kept, weights are not touched.
TEST(CheckUpdate, DemandsThatAStepWithoutARateMovesNoWeight) {
  const auto cosine = [](ExampleUpdate& example) {
    example.num_updates = 0;
    example.spec.config.schedule.kind = contract::Schedule::Kind::kWarmupCosine;
    example.spec.config.schedule.total_num_steps = 2000;
  };
  ExampleUpdate update = Make(cosine);
  update.after.step = 0;
  Execute({}, update);
  EXPECT_EQ(Check(update).check.outcome, CheckOutcome::kPass) << Check(update).check.detail;
  double& master = update.after.of(TensorKind::kMaster)[3][5];
  master = std::nextafterf(static_cast<float>(master), 2.0f);
  update.after.of(TensorKind::kWeight)[3][5] = master;
  ASSERT_TRUE(Check(update).divergence);
  EXPECT_EQ(Check(update).divergence->quantity, "master");
  Execute({.no_update = true}, update);
  ASSERT_TRUE(Check(update).divergence);
  EXPECT_EQ(Check(update).divergence->quantity, "moment") << "and moments do move";
}

TEST(CheckUpdate, DemandsTheBetasOfTheStep) {
  ExampleUpdate update = Make(Cycle);
  Execute({}, update);
  EXPECT_EQ(Check(update).check.outcome, CheckOutcome::kPass) << Check(update).check.detail;
  Execute({.config_betas = true}, update);
  ASSERT_TRUE(Check(update).divergence);
  EXPECT_EQ(Check(update).divergence->quantity, "moment");
}

TEST(CheckUpdate, DemandsThatAGradientThatIsNotFiniteIsSkipped) {
  ExampleUpdate update = Make(Plain);
  Execute({}, update);
  update.after.of(TensorKind::kGradient)[0][0] = HUGE_VAL;
  EXPECT_EQ(Check(update).divergence->quantity, "gradient");
}

TEST(CheckUpdate, IsVacuousWhereNothingMovesVisibly) {
  const auto outcome = [](Configure configure) {
    ExampleUpdate update = Make(configure);
    Execute({}, update);
    return Check(update).check.outcome;
  };
  EXPECT_EQ(outcome([](ExampleUpdate& update) { update.spec.config.params.lr = 0; }), CheckOutcome::kVacuous);
  EXPECT_EQ(outcome([](ExampleUpdate& update) { update.spec.config.params.lr = 1e-9; }), CheckOutcome::kVacuous);
  EXPECT_EQ(outcome([](ExampleUpdate& update) {
              update.spec.config.schedule = {contract::Schedule::Kind::kWarmup, 0, 0, 1000, false};
            }),
            CheckOutcome::kVacuous);  // a schedule that never has a rate
  EXPECT_EQ(outcome([](ExampleUpdate& update) {
              update.spec.config.schedule = {contract::Schedule::Kind::kWarmup, 0, 1e-3, 1000, false};
              update.spec.first_step = 0;
            }),
            CheckOutcome::kPass);  // step 9 of the warm-up has an lr
}

TEST(CheckUpdate, FailsWhenTensorsAreMissingOrHaveAnotherSize) {
  for (TensorKind kind : contract::kTensorKinds) {
    ExampleUpdate update = Make(Plain);
    Execute({}, update);
    update.after.of(kind)[2].pop_back();
    EXPECT_EQ(Check(update).divergence->quantity, contract::Name(kind));
    update.after.of(kind)[2].clear();
    EXPECT_EQ(Check(update).divergence->quantity, contract::Name(kind));
    update.after.of(kind).clear();
    EXPECT_EQ(Check(update).check.outcome, CheckOutcome::kFail);
  }
  ExampleUpdate update = Make(Plain);
  Execute({}, update);
  update.before.pop_back();
  EXPECT_EQ(Check(update).check.outcome, CheckOutcome::kFail);
}

TEST(CheckClipped, IsVacuousUnlessAHistoryClipsAStepBeyondRounding) {
  ExampleUpdate update = Make(History);
  Execute({}, update);
  const auto outcome = [&](const contract::NormHistory& before, size_t num_steps) {
    const std::vector<contract::NormHistory> histories(num_steps, before);
    const std::vector<StepSight> steps(num_steps, update.after);
    return CheckClipped(update.spec.config, histories, steps).outcome;
  };
  const double norm = update.after.real.gradient_norm;
  EXPECT_EQ(outcome({5, norm / 2, 0}, 1), CheckOutcome::kPass);
  EXPECT_EQ(outcome({4, norm / 2, 0}, 1), CheckOutcome::kVacuous) << "it warms up";
  EXPECT_EQ(outcome({5, norm, 0}, 1), CheckOutcome::kVacuous) << "within rounding";
  EXPECT_EQ(outcome({5, 2 * norm, 0}, 3), CheckOutcome::kVacuous);
  EXPECT_EQ(outcome({5, norm / 2, 0}, 0), CheckOutcome::kVacuous) << "no step";
  update.after.real.gradient_norm = NAN;
  EXPECT_EQ(outcome({5, norm / 2, 0}, 1), CheckOutcome::kVacuous);
}

ExampleUpdate SkippedStep(Configure configure) {
  ExampleUpdate update = Make(configure);
  Execute({.no_update = true}, update);
  update.after.of(TensorKind::kGradient)[3][5] = HUGE_VAL;
  update.after.real.gradient_norm = std::numeric_limits<double>::quiet_NaN();
  update.after.real.skipped = true;
  return update;
}

RealResult Skip(const ExampleUpdate& update) { return CheckSkipped(update.spec, update.start(), update.after); }

TEST(CheckSkipped, PassesAStepThatChangedNothingAndCounts) {
  for (Configure configure : {Plain, Sgd, Momentum, Bf16}) {
    const RealResult result = Skip(SkippedStep(configure));
    EXPECT_EQ(result.check.outcome, CheckOutcome::kPass) << result.check.detail;
    EXPECT_GT(result.check.compared, 2 * 1000);
    EXPECT_EQ(result.check.name, "skip");
  }
}

TEST(CheckSkipped, FindsOneBitThatChanged) {
  for (TensorKind kind : {TensorKind::kMoment, TensorKind::kSecondMoment, TensorKind::kMaster, TensorKind::kWeight}) {
    ExampleUpdate update = SkippedStep(Plain);
    double& value = update.after.of(kind)[2].back();
    value = std::nextafterf(static_cast<float>(value), 2.0f);
    const RealResult result = Skip(update);
    ASSERT_TRUE(result.divergence) << contract::Name(kind);
    EXPECT_EQ(result.divergence->quantity, contract::Name(kind));
    EXPECT_EQ(result.divergence->tensor, "layers.0.norm1.weight");
  }
}

// The step that is skipped is often the one whose state holds such numbers.
TEST(CheckSkipped, TellsNumbersOfOtherBitsApartButNotNaNs) {
  const float numbers[] = {
      0.0f, -0.0f, 0x1p-149f, -0x1p-149f, HUGE_VALF, -HUGE_VALF, std::numeric_limits<float>::quiet_NaN()};
  for (Configure configure : {Plain, Bf16}) {
    for (TensorKind kind : {TensorKind::kMoment, TensorKind::kSecondMoment, TensorKind::kMaster, TensorKind::kWeight}) {
      const auto outcome = [&](float before, double after) {
        ExampleUpdate update = SkippedStep(configure);
        auto& state = update.before[2];
        (kind == TensorKind::kMoment         ? state.moment
         : kind == TensorKind::kSecondMoment ? state.second_moment
                                             : state.master)[1] = before;
        if (kind == TensorKind::kWeight) update.after.of(TensorKind::kMaster)[2][1] = before;
        if (kind == TensorKind::kMaster) {
          update.after.of(TensorKind::kWeight)[2][1] =
              configure == Bf16 && std::isfinite(before) ? ToBf16(before) : before;
        }
        update.after.of(kind)[2][1] = after;
        return Skip(update).check.outcome;
      };
      for (const float& before : numbers) {
        for (const float& after : numbers) {
          // bf16 rounds the smallest numbers of fp32 to zero.
          const float kept =
              kind == TensorKind::kWeight && configure == Bf16 && std::isfinite(before) ? ToBf16(before) : before;
          const bool same =
              std::isnan(kept) ? std::isnan(after) : std::bit_cast<uint32_t>(kept) == std::bit_cast<uint32_t>(after);
          EXPECT_EQ(outcome(before, after), same ? CheckOutcome::kPass : CheckOutcome::kFail)
              << contract::Name(kind) << " " << before << " and " << after;
        }
      }
      EXPECT_EQ(outcome(static_cast<float>(kNaN), kOtherNaN), CheckOutcome::kPass);
    }
  }
}

TEST(CheckSkipped, FailsWhenTensorsAreMissingOrHaveAnotherSize) {
  for (TensorKind kind : contract::kTensorKinds) {
    ExampleUpdate update = SkippedStep(Plain);
    update.after.of(kind)[2].pop_back();
    EXPECT_EQ(Skip(update).divergence->quantity, contract::Name(kind));
    update.after.of(kind)[2].clear();
    EXPECT_EQ(Skip(update).divergence->quantity, contract::Name(kind));
    update.after.of(kind).clear();
    EXPECT_EQ(Skip(update).check.outcome, CheckOutcome::kFail);
  }
}

TEST(CheckSkipped, FailsUnlessTheStepSaysSoAndHadAReason) {
  ExampleUpdate update = SkippedStep(Plain);
  update.after.real.skipped = false;
  EXPECT_EQ(Skip(update).divergence->quantity, "skipped");
  update = SkippedStep(Plain);
  update.after.real.gradient_norm = 3;
  EXPECT_EQ(Skip(update).divergence->quantity, "gradient_norm");
  update = SkippedStep(Plain);
  update.after.of(TensorKind::kGradient)[3][5] = 1;
  EXPECT_EQ(Skip(update).check.outcome, CheckOutcome::kFail);
  EXPECT_EQ(CheckSkipped(update.spec, {}, update.after).check.outcome, CheckOutcome::kFail);
}

}  // namespace
}  // namespace plumbline::conformance
