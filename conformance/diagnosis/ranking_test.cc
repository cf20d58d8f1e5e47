// SPDX-License-Identifier: Apache-2.0
// Every hypothesis is recognised on a tensor that was made wrong in its way, by code of this file, and none is claimed
// on a tensor that was made wrong in another's. The table is complete: a hypothesis without a row fails the last test.
#include "conformance/diagnosis/ranking.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "conformance/contract/digest.h"
#include "conformance/diagnosis/hypothesis.h"
#include "conformance/diagnosis/unit_factors.h"
#include "conformance/oracle/storage_rounding.h"

namespace plumbline::conformance {
namespace {

using contract::OptimizerKind;
using contract::TensorKind;

constexpr int64_t kRanks = 3;
constexpr int64_t kSteps = 5;  // accumulation steps
constexpr int64_t kRows = 7;
constexpr int64_t kCols = 11;
constexpr size_t kNumel = kRows * kCols;

// Fixed numbers in [-1, 1), or integers in [-12, 12].
double Draw(bool is_exact, int64_t what, size_t i) {
  const uint64_t word = contract::Mix(static_cast<uint64_t>(what) * 1000003 + i + 1);
  if (is_exact) return static_cast<double>(word % 25) - 12;
  return static_cast<double>(word >> 11) * 0x1p-52 - 1;
}

Values DrawAll(bool is_exact, int64_t what, double scale = 1) {
  Values values(kNumel);
  for (size_t i = 0; i < kNumel; ++i) values[i] = scale * Draw(is_exact, what, i);
  return values;
}

Values Map(const std::function<double(size_t)>& value) {
  Values values(kNumel);
  for (size_t i = 0; i < kNumel; ++i) values[i] = value(i);
  return values;
}

const std::vector<HeldRange> kHeld = {{0, 0, 32}, {1, 32, 64}, {2, 64, kNumel}};

size_t RankOf(size_t i) { return i / 32; }

double Bf16(double value) { return RoundToStorage(value, contract::DType::kBF16); }

Evidence GradientEvidence(bool is_exact) {
  Evidence evidence;
  evidence.is_exact = is_exact;
  evidence.parameter = {"layers.0.attn.q", kRows, kCols, 2};
  evidence.num_ranks = kRanks;
  evidence.num_accumulation_steps = kSteps;
  evidence.held = kHeld;
  evidence.gradient.resize(kNumel);
  for (int64_t j = 0; j < kRanks * kSteps; ++j) {
    evidence.shares.push_back(DrawAll(is_exact, 10 + j));
    evidence.share_tokens.push_back(static_cast<double>(20 + 7 * j % 11));
    for (size_t i = 0; i < kNumel; ++i) evidence.gradient[i] += evidence.shares.back()[i];
  }
  evidence.truth = evidence.gradient;
  evidence.changed = {{"neighbour_data", "labels of the next micro-batch", DrawAll(is_exact, 50)},
                      {"stale_gradient", "", DrawAll(is_exact, 51)}};
  if (!is_exact) evidence.noise = 1e-7;
  return evidence;
}

double Share(const Evidence& evidence, int64_t a, int64_t rank, size_t i) {
  return evidence.shares[static_cast<size_t>(a * kRanks + rank)][i];
}

// What an engine would make if each share had this weight.
Values Mix(const Evidence& evidence, const std::function<double(int64_t a, int64_t rank)>& weight) {
  return Map([&](size_t i) {
    double sum = 0;
    for (int64_t a = 0; a < kSteps; ++a) {
      for (int64_t rank = 0; rank < kRanks; ++rank) sum += weight(a, rank) * Share(evidence, a, rank, i);
    }
    return sum;
  });
}

struct Row {
  std::string name;
  std::function<Values(const Evidence&)> candidate;
  std::set<std::string> twins = {};  // which say the same of this very candidate
};

std::vector<Row> GradientRows() {
  return {
      {"factor_ranks", [](const Evidence& e) { return Map([&](size_t i) { return 3 * e.truth[i]; }); }},
      {"factor_ranks", [](const Evidence& e) { return Map([&](size_t i) { return e.truth[i] / 3; }); }},
      {"factor_accumulation", [](const Evidence& e) { return Map([&](size_t i) { return e.truth[i] / 5; }); }},
      {"factor_accumulation", [](const Evidence& e) { return Map([&](size_t i) { return e.truth[i] * 5; }); }},
      {"factor_both", [](const Evidence& e) { return Map([&](size_t i) { return e.truth[i] / 15; }); }},
      {"other_factor", [](const Evidence& e) { return Map([&](size_t i) { return e.truth[i] * 0.75; }); }},
      {"sign_flipped", [](const Evidence& e) { return Map([&](size_t i) { return -e.truth[i]; }); }},
      {"missing_reduction",
       [](const Evidence& e) {
         return Map([&](size_t i) {
           double sum = 0;
           for (int64_t a = 0; a < kSteps; ++a) sum += Share(e, a, static_cast<int64_t>(RankOf(i)), i);
           return sum;
         });
       }},
      {"dropped_micro_batch", [](const Evidence& e) { return Mix(e, [](int64_t a, int64_t) { return a != 4; }); }},
      {"dropped_micro_batch", [](const Evidence& e) { return Mix(e, [](int64_t a, int64_t) { return a == 0; }); }},
      {"dropped_micro_batch",
       [](const Evidence& e) { return Mix(e, [](int64_t a, int64_t r) { return !(a == 2 && r == 1); }); }},
      {"repeated_micro_batch",
       [](const Evidence& e) { return Mix(e, [](int64_t a, int64_t) { return a == 3 ? 2 : 1; }); }},
      {"repeated_micro_batch",
       [](const Evidence& e) { return Mix(e, [](int64_t a, int64_t) { return a == 3   ? 2
                                                                             : a == 0 ? 0
                                                                                      : 1; }); }},
      {"missing_rank", [](const Evidence& e) { return Mix(e, [](int64_t, int64_t r) { return r != 2; }); }},
      {"repeated_rank",
       [](const Evidence& e) { return Mix(e, [](int64_t, int64_t r) { return r == 1   ? 2
                                                                             : r == 2 ? 0
                                                                                      : 1; }); }},
      {"mean_of_means",
       [](const Evidence& e) {
         double tokens = 0;
         for (double count : e.share_tokens) tokens += count;
         return Mix(e, [&](int64_t a, int64_t r) {
           return tokens / (15 * e.share_tokens[static_cast<size_t>(a * kRanks + r)]);
         });
       }},
      {"neighbour_data", [](const Evidence& e) { return e.changed[0].values; }},
      {"stale_gradient", [](const Evidence& e) { return e.changed[1].values; }},
      {"transposed",
       [](const Evidence& e) { return Map([&](size_t i) { return e.truth[(i % kRows) * kCols + i / kRows]; }); }},
      {"shifted_shard", [](const Evidence& e) { return Map([&](size_t i) { return e.truth[i % 32]; }); }},
      {"shifted_shard",
       [](const Evidence& e) { return Map([&](size_t i) { return e.truth[i + 2 < kNumel ? i + 2 : i]; }); }},
      {"zeroed_region", [](const Evidence& e) { return Map([&](size_t i) { return i >= 50 ? 0 : e.truth[i]; }); }},
      {"not_finite", [](const Evidence& e) { return Map([&](size_t i) { return i == 60 ? NAN : e.truth[i]; }); }},
  };
}

TensorState StateBefore(bool is_exact) {
  if (is_exact) {
    return {Map([](size_t i) { return static_cast<double>(contract::Mix(i + 77) % 24); }), DrawAll(true, 61), {}};
  }
  TensorState state{DrawAll(false, 60), DrawAll(false, 61, 0.1), DrawAll(false, 62, 0.1)};
  for (double& value : state.second_moment) value = value * value + 1e-3;
  return state;
}

Evidence UpdateEvidence(TensorKind kind, OptimizerKind optimizer) {
  Evidence evidence = GradientEvidence(optimizer == OptimizerKind::kModularMomentum);
  evidence.kind = kind;
  evidence.used_gradient = evidence.gradient;
  evidence.before = StateBefore(evidence.is_exact);
  evidence.initial = {DrawAll(evidence.is_exact, 70), Values(kNumel), {}};
  evidence.initial.second_moment.resize(kNumel);
  UpdateRecipe& recipe = evidence.recipe;
  recipe.optimizer = optimizer;
  recipe.params = {0.01, 0.9, 0.99, 1e-3, 0.1, optimizer == OptimizerKind::kSgd ? 0.8 : 0.0};
  recipe.storage = contract::DType::kBF16;
  recipe.clip_factor = optimizer == OptimizerKind::kModularMomentum ? 1 : 0.4;
  recipe.t = 4;
  evidence.whole_norm = 100;
  evidence.clipping = 0.4 * (100 + 1e-6);
  evidence.rank_norms = {60, 70, 90};
  UpdateRecipe other = recipe;
  other.params.lr = 0.03;
  other.params.weight_decay = 0.7;
  evidence.neighbours = {{"of group 1", other}};
  other = recipe;
  other.params.lr = 0.02;
  evidence.neighbours.emplace_back("of step 9", other);
  evidence.truth = AfterUpdate(recipe, evidence.before, evidence.used_gradient, kind);
  return evidence;
}

// AdamW, written down once more, with numbers of its own.
struct Adam {
  double lr = 0.01, beta1 = 0.9, beta2 = 0.99, eps = 1e-3, decay = 0.1, clip = 0.4;
  double coupled = 0;
  double correction1 = 1 - 0.9 * 0.9 * 0.9 * 0.9;
  double correction2 = 1 - 0.99 * 0.99 * 0.99 * 0.99;
  bool eps_inside = false;

  double Master(double p, double m, double v, double g) const {
    g = clip * g + coupled * p;
    m = beta1 * m + (1 - beta1) * g;
    v = beta2 * v + (1 - beta2) * g * g;
    const double root = eps_inside ? std::sqrt(v / correction2 + eps) : std::sqrt(v / correction2) + eps;
    return p - lr * decay * p - lr * m / correction1 / root;
  }
  Values All(const Evidence& e) const {
    return Map([&](size_t i) {
      return Master(e.before.master[i], e.before.moment[i], e.before.second_moment[i], e.used_gradient[i]);
    });
  }
};

std::vector<Row> AdamRows() {
  const auto adam = [](const std::function<void(Adam&)>& change) {
    return [change](const Evidence& e) {
      Adam adam;
      change(adam);
      return adam.All(e);
    };
  };
  const double nine = 0.9 * 0.9 * 0.9;
  const double ninety_nine = 0.99 * 0.99 * 0.99;
  return {
      {"not_updated", [](const Evidence& e) { return e.before.master; }, {"stale_region"}},
      {"step_counter", adam([=](Adam& a) { a.correction1 = 1 - nine, a.correction2 = 1 - ninety_nine; })},
      {"step_counter", adam([=](Adam& a) { a.correction1 = 0.1, a.correction2 = 0.01; })},
      {"bias_correction", adam([](Adam& a) { a.correction1 = a.correction2 = 1; })},
      {"bias_correction", adam([](Adam& a) { a.correction2 = 1; })},
      {"clipping_missing", adam([](Adam& a) { a.clip = 1; }), {"clipping_inverted", "clipping_norm"}},
      {"clipping_twice", adam([](Adam& a) { a.clip = 0.16; })},
      {"clipping_norm",
       [](const Evidence& e) {
         return Map([&](size_t i) {
           Adam adam;
           adam.clip = 0.4 * 100 / e.rank_norms[RankOf(i)];
           return adam.Master(e.before.master[i], e.before.moment[i], e.before.second_moment[i], e.used_gradient[i]);
         });
       }},
      {"other_step_rate", adam([](Adam& a) { a.lr = 0.02; })},
      {"other_group_rate", adam([](Adam& a) { a.lr = 0.03; })},
      {"other_group_rate", adam([](Adam& a) { a.lr = 0.03, a.decay = 0.7; }), {"other_group_decay"}},
      {"other_group_decay", adam([](Adam& a) { a.decay = 0.7; })},
      {"decay_missing", adam([](Adam& a) { a.decay = 0; })},
      {"decay_form", adam([](Adam& a) { a.coupled = 0.1, a.decay = 0; })},
      {"swapped_parameters",
       adam([](Adam& a) { std::swap(a.beta1, a.beta2), std::swap(a.correction1, a.correction2); })},
      {"swapped_parameters", adam([](Adam& a) { std::swap(a.lr, a.eps); })},
      {"epsilon_place", adam([](Adam& a) { a.eps_inside = true; })},
      {"lost_state",
       [](const Evidence& e) {
         return Map([&](size_t i) { return Adam().Master(e.before.master[i], e.before.moment[i], 0, e.gradient[i]); });
       }},
      {"shifted_state",
       [](const Evidence& e) {
         return Map([&](size_t i) {
           const size_t j = i % 32;
           return Adam().Master(e.before.master[j], e.before.moment[j], e.before.second_moment[j], e.gradient[i]);
         });
       }},
      {"low_precision_state",
       [](const Evidence& e) {
         return Map([&](size_t i) {
           return Adam().Master(Bf16(e.before.master[i]), e.before.moment[i], e.before.second_moment[i], e.gradient[i]);
         });
       }},
      {"stale_region",
       [](const Evidence& e) { return Map([&](size_t i) { return i < 40 ? e.truth[i] : e.before.master[i]; }); }},
      // A mistake in the gradient that the update used, though the right one was reported.
      {"factor_accumulation", adam([](Adam& a) { a.clip = 0.4 / 5; })},
      {"sign_flipped", adam([](Adam& a) { a.clip = -0.4; })},
  };
}

bool IsFactor(const std::string& name) { return name.starts_with("factor_") || name == "sign_flipped"; }

bool IsIntegral(const Values& values) {
  return std::all_of(values.begin(), values.end(), [](double value) { return !(value != std::floor(value)); });
}

void ExpectRow(const Evidence& right, const Row& row) {
  Evidence evidence = right;
  evidence.candidate = row.candidate(evidence);
  const std::vector<RankedHypothesis> ranked = RankHypotheses(evidence, 100);
  ASSERT_FALSE(ranked.empty()) << row.name;
  EXPECT_EQ(ranked.front().name, row.name) << ranked.front().says << ", residual " << ranked.front().residual;
  EXPECT_TRUE(ranked.front().fits) << row.name << " with residual " << ranked.front().residual;
  for (const RankedHypothesis& other : ranked) {
    if (!other.fits || other.name == row.name || row.twins.contains(other.name)) continue;
    if (other.name == "other_factor" && IsFactor(row.name)) continue;  // says less of the same
    // Several fits are allowed only where the best is better by far.
    EXPECT_GT(other.residual, 100 * ranked.front().residual + 0.003) << other.name << " is claimed for " << row.name;
  }
}

TEST(Hypotheses, OfGradientsAreRecognisedAndNotConfusedInRealNumbers) {
  for (const Row& row : GradientRows()) ExpectRow(GradientEvidence(false), row);
}

TEST(Hypotheses, OfGradientsAreRecognisedAndNotConfusedInIntegers) {
  for (const Row& row : GradientRows()) {
    const Evidence evidence = GradientEvidence(true);
    // An engine of family exact whose gradients leave the integers ends by itself.
    if (IsIntegral(row.candidate(evidence))) ExpectRow(evidence, row);
  }
}

TEST(Hypotheses, OfUpdatesAreRecognisedAndNotConfused) {
  for (const Row& row : AdamRows()) ExpectRow(UpdateEvidence(TensorKind::kMaster, OptimizerKind::kAdamW), row);
}

TEST(Hypotheses, LowPrecisionIsRecognisedWhereverItIsKept) {
  const Evidence real = GradientEvidence(false);
  ExpectRow(real, {"low_precision", [](const Evidence& e) { return Map([&](size_t i) { return Bf16(e.truth[i]); }); }});
  ExpectRow(real, {"low_precision", [](const Evidence& e) {
                     return Map([&](size_t i) {
                       double sum = 0;
                       for (int64_t a = 0; a < kSteps; ++a) {
                         double over_ranks = 0;
                         for (int64_t r = 0; r < kRanks; ++r) over_ranks += Share(e, a, r, i);
                         sum = Bf16(sum + over_ranks);
                       }
                       return sum;
                     });
                   }});
}

TEST(Hypotheses, OfSgdAreRecognised) {
  const Evidence evidence = UpdateEvidence(TensorKind::kMaster, OptimizerKind::kSgd);
  const auto moment = [](const Evidence& e, size_t i) {
    return 0.8 * e.before.moment[i] + 0.4 * e.gradient[i] + 0.1 * e.before.master[i];
  };
  ExpectRow(evidence, {"momentum_form", [&](const Evidence& e) {
                         return Map([&](size_t i) {
                           const double g = 0.4 * e.gradient[i] + 0.1 * e.before.master[i];
                           return e.before.master[i] - 0.01 * (g + 0.8 * moment(e, i));
                         });
                       }});
  ExpectRow(evidence, {"decay_missing", [&](const Evidence& e) {
                         return Map([&](size_t i) {
                           return e.before.master[i] - 0.01 * (moment(e, i) - 0.1 * e.before.master[i]);
                         });
                       }});
}

TEST(Hypotheses, AnInvertedClipFactorIsRecognisedWhereTheNormIsBelowTheLimit) {
  Evidence evidence = UpdateEvidence(TensorKind::kMoment, OptimizerKind::kAdamW);
  evidence.recipe.clip_factor = 1;
  evidence.clipping = 250;
  evidence.truth = AfterUpdate(evidence.recipe, evidence.before, evidence.used_gradient, TensorKind::kMoment);
  ExpectRow(evidence, {"clipping_inverted", [](const Evidence& e) {
                         return Map([&](size_t i) { return 0.9 * e.before.moment[i] + 0.1 * 2.5 * e.gradient[i]; });
                       }});
}

TEST(Hypotheses, OfTheModularUpdateAreRecognised) {
  const auto mod = [](double x, double m) { return x - m * std::floor(x / m); };
  const auto moment = [=](const Evidence& e, size_t i, double t) {
    return mod(e.before.moment[i] + e.gradient[i] + t + 14, 29) - 14;
  };
  const Evidence moments = UpdateEvidence(TensorKind::kMoment, OptimizerKind::kModularMomentum);
  ExpectRow(moments,
            {"step_counter", [&](const Evidence& e) { return Map([&](size_t i) { return moment(e, i, 5); }); }});
  ExpectRow(moments, {"step_counter", [&](const Evidence& e) {
                        return Map([&](size_t i) { return moment(e, i, 4 + static_cast<double>(RankOf(i))); });
                      }});
  const Evidence masters = UpdateEvidence(TensorKind::kMaster, OptimizerKind::kModularMomentum);
  ExpectRow(masters, {"lost_state", [&](const Evidence& e) {
                        return Map([&](size_t i) {
                          return mod(8 * std::floor(e.before.master[i] / 8) - moment(e, i, 4) - 4, 24);
                        });
                      }});
  const Evidence weights = UpdateEvidence(TensorKind::kWeight, OptimizerKind::kModularMomentum);
  ExpectRow(weights,
            {"late_weight",
             [&](const Evidence& e) { return Map([&](size_t i) { return std::floor(e.before.master[i] / 8) - 1; }); },
             {"stale_region"}});
}

TEST(Hypotheses, NoneFitsAnUnrelatedTensor) {
  for (bool is_exact : {false, true}) {
    Evidence evidence = GradientEvidence(is_exact);
    evidence.candidate = DrawAll(is_exact, 99);
    for (const RankedHypothesis& ranked : RankHypotheses(evidence, 100)) EXPECT_FALSE(ranked.fits) << ranked.name;
  }
  Evidence evidence = UpdateEvidence(TensorKind::kMaster, OptimizerKind::kAdamW);
  evidence.candidate = DrawAll(false, 99);
  for (const RankedHypothesis& ranked : RankHypotheses(evidence, 100)) EXPECT_FALSE(ranked.fits) << ranked.name;
}

// Integers that need nine bits, at these places; all others fit into bf16.
Evidence WithWideIntegers(const std::vector<size_t>& places) {
  Evidence evidence = GradientEvidence(true);
  evidence.shares.clear();
  for (double& value : evidence.gradient) value = std::fmod(value, 100);
  for (size_t i : places) evidence.gradient[i] = 257 + 4 * static_cast<double>(i);
  evidence.truth = evidence.gradient;
  evidence.candidate = Map([&](size_t i) { return Bf16(evidence.truth[i]); });
  return evidence;
}

TEST(Hypotheses, AFitThatRestsOnFewIntegersIsNotClaimed) {
  Evidence zero = GradientEvidence(true);
  zero.candidate = zero.truth;
  zero.candidate[5] = 0;
  const Evidence rounded = WithWideIntegers({30});
  for (const Evidence& evidence : {zero, rounded}) {
    const std::vector<RankedHypothesis> ranked = RankHypotheses(evidence, 100);
    ASSERT_FALSE(ranked.empty());
    EXPECT_EQ(ranked.front().residual, 0);  // shown as the nearest
    for (const RankedHypothesis& hypothesis : ranked) EXPECT_FALSE(hypothesis.fits) << hypothesis.name;
  }
}

TEST(Hypotheses, AFitThatAlsoSaysWhichFewIntegersDifferIsClaimed) {
  const std::vector<RankedHypothesis> ranked = RankHypotheses(WithWideIntegers({2, 30, 76}));
  ASSERT_FALSE(ranked.empty());
  EXPECT_EQ(ranked.front().name, "low_precision");
  EXPECT_TRUE(ranked.front().fits);
}

// A divergence eight times its rounding, of which a third, a quarter or a fifteenth is left by one factor or another.
TEST(Hypotheses, WhatRoundingAllowsIsClaimedOnlyWhereItAllowsNothingElse) {
  Evidence evidence = GradientEvidence(false);
  evidence.shares.clear();
  evidence.changed.clear();
  const Values direction = DrawAll(false, 99);
  const auto offset = [&](double share) {
    return Map([&](size_t i) { return evidence.truth[i] + share * 1e-3 * direction[i]; });
  };
  evidence.candidate = offset(1);
  double squares = 0;
  for (double value : direction) squares += 1e-6 * value * value;
  evidence.noise = std::sqrt(squares) / 8;  // a limit of a half
  const auto claimed = [&](const std::vector<ChangedGradient>& changed) {
    evidence.changed = changed;
    std::set<std::string> names;
    for (const RankedHypothesis& ranked : RankHypotheses(evidence, 100)) {
      if (ranked.fits) names.insert(ranked.name);
    }
    return names;
  };
  using Names = std::set<std::string>;
  const ChangedGradient stale{"stale_gradient", "", offset(0.7)}, near{"neighbour_data", "", offset(0.96)},
      far{"neighbour_data", "", offset(0.9)}, like{"neighbour_data", "", offset(0.69)};
  EXPECT_EQ(claimed({stale}), Names{"stale_gradient"}) << "nothing else explains it";
  EXPECT_EQ(claimed({stale, far}), Names{}) << "neither explains it, and rounding allows both";
  EXPECT_EQ(claimed({stale, near}), Names{"neighbour_data"}) << "which explains it without rounding";
  EXPECT_EQ(claimed({stale, like}), (Names{"stale_gradient", "neighbour_data"})) << "they say the same";
}

TEST(Hypotheses, OneRankThatIsWrongAloneIsNamed) {
  Evidence evidence = GradientEvidence(false);
  evidence.candidate = Map([&](size_t i) { return RankOf(i) == 1 ? evidence.truth[i] / 3 : evidence.truth[i]; });
  const std::vector<RankedHypothesis> ranked = RankHypotheses(evidence);
  ASSERT_FALSE(ranked.empty());
  EXPECT_EQ(ranked.front().name, "factor_ranks");
  EXPECT_NE(ranked.front().says.find("in the part of rank 1"), std::string::npos) << ranked.front().says;
}

TEST(Hypotheses, EqualTensorsHaveNoHypothesisAndEmptyOnesNeither) {
  Evidence evidence = GradientEvidence(false);
  evidence.candidate = evidence.truth;
  EXPECT_TRUE(RankHypotheses(evidence).empty());
  EXPECT_TRUE(RankHypotheses(Evidence()).empty());
}

TEST(Hypotheses, NumbersAreTriedWithoutFittedOnes) {
  Evidence evidence;
  evidence.is_exact = false;
  evidence.is_number = true;
  evidence.held = {{0, 0, 1}};
  evidence.truth = {0.01};
  evidence.changed = {{"other_step_rate", "of step 3", {0.02}}};
  evidence.noise = 1e-9;
  evidence.candidate = {0.02};
  ASSERT_FALSE(RankHypotheses(evidence).empty());
  EXPECT_EQ(RankHypotheses(evidence).front().name, "other_step_rate");
  EXPECT_TRUE(RankHypotheses(evidence).front().fits);
  evidence.candidate = {0.0201};
  for (const RankedHypothesis& ranked : RankHypotheses(evidence)) EXPECT_FALSE(ranked.fits) << ranked.name;
}

// LAMB, written down once more: the ratio of each part.
Values Lamb(const Evidence& e, const std::vector<HeldRange>& parts, double largest) {
  Values master = e.before.master;
  for (const HeldRange& part : parts) {
    Values directions;
    double weights = 0, updates = 0;
    for (auto i = static_cast<size_t>(part.begin); i < static_cast<size_t>(part.end); ++i) {
      const double g = 0.4 * e.used_gradient[i];
      const double m = 0.9 * e.before.moment[i] + 0.1 * g;
      const double v = 0.99 * e.before.second_moment[i] + 0.01 * g * g;
      const Adam adam;
      directions.push_back(m / adam.correction1 / (std::sqrt(v / adam.correction2) + adam.eps) + 0.1 * master[i]);
      weights += master[i] * master[i];
      updates += directions.back() * directions.back();
    }
    const double ratio = std::min(largest, std::sqrt(weights / updates));
    for (size_t i = 0; i < directions.size(); ++i) {
      master[static_cast<size_t>(part.begin) + i] -= 0.01 * ratio * directions[i];
    }
  }
  return master;
}

TEST(Hypotheses, OfLambAreRecognised) {
  Evidence evidence = UpdateEvidence(TensorKind::kMaster, OptimizerKind::kLamb);
  const std::vector<HeldRange> whole = {{0, 0, kNumel}};
  const Values right = Lamb(evidence, whole, 10);
  for (size_t i = 0; i < kNumel; ++i) ASSERT_NEAR(evidence.truth[i], right[i], 1e-14);
  ExpectRow(evidence, {"ratio_of_norms", [](const Evidence& e) { return Lamb(e, kHeld, 10); }});
  // Without a ratio an update is one by another rate.
  evidence.recipe.params.max_coeff = 0.05;
  evidence.truth = AfterUpdate(evidence.recipe, evidence.before, evidence.used_gradient, TensorKind::kMaster);
  ExpectRow(evidence, {"ratio_of_norms", [&](const Evidence& e) { return Lamb(e, whole, 1e9); }});
}

TEST(Hypotheses, OfLionAreRecognised) {
  Evidence evidence = UpdateEvidence(TensorKind::kMaster, OptimizerKind::kLion);
  const auto lion = [](double beta, double decay) {
    return [=](const Evidence& e) {
      return Map([&](size_t i) {
        const double c = beta * e.before.moment[i] + (1 - beta) * 0.4 * e.gradient[i];
        return e.before.master[i] * (1 - 0.01 * decay) - 0.01 * (c > 0 ? 1 : -1);
      });
    };
  };
  const Values right = lion(0.9, 0.1)(evidence);
  for (size_t i = 0; i < kNumel; ++i) ASSERT_NEAR(evidence.truth[i], right[i], 1e-15);
  ExpectRow(evidence, {"swapped_parameters", lion(0.99, 0.1)});
  ExpectRow(evidence, {"decay_missing", lion(0.9, 0)});
}

TEST(Hypotheses, OfAnExemptGroupAreRecognised) {
  Evidence evidence = UpdateEvidence(TensorKind::kMoment, OptimizerKind::kAdamW);
  evidence.is_exempt = true;
  evidence.recipe.clip_factor = 1;
  evidence.truth = AfterUpdate(evidence.recipe, evidence.before, evidence.used_gradient, TensorKind::kMoment);
  ExpectRow(evidence, {"exempt_clipped", [](const Evidence& e) {
                         return Map([&](size_t i) { return 0.9 * e.before.moment[i] + 0.1 * 0.4 * e.gradient[i]; });
                       }});
}

// Units that each hold the elements for which `unit_of` gives the same number.
Values ClippedMoments(const Evidence& e, const std::function<size_t(size_t)>& unit_of) {
  std::map<size_t, double> gradients, weights;
  for (size_t i = 0; i < kNumel; ++i) {
    gradients[unit_of(i)] += e.gradient[i] * e.gradient[i];
    weights[unit_of(i)] += e.before.master[i] * e.before.master[i];
  }
  return Map([&](size_t i) {
    const double allowed = 0.3 * std::max(std::sqrt(weights[unit_of(i)]), 1.5);
    const double factor = std::min(1.0, allowed / std::sqrt(gradients[unit_of(i)]));
    return 0.9 * e.before.moment[i] + 0.1 * factor * e.gradient[i];
  });
}

TEST(Hypotheses, OfUnitsAreRecognised) {
  Evidence evidence = UpdateEvidence(TensorKind::kMoment, OptimizerKind::kAdamW);
  evidence.clipping = 0;
  evidence.parameter.units = contract::UnitShape::kColumns;
  evidence.adaptive_clipping = {contract::AdaptiveClipping::Kind::kUnit, 0.3, 1.5};
  evidence.recipe.unit_factors =
      UnitFactors(evidence.parameter, evidence.adaptive_clipping, evidence.used_gradient, evidence.before.master);
  evidence.truth = AfterUpdate(evidence.recipe, evidence.before, evidence.used_gradient, TensorKind::kMoment);
  const Values right = ClippedMoments(evidence, [](size_t i) { return i % kCols; });
  for (size_t i = 0; i < kNumel; ++i) ASSERT_NEAR(evidence.truth[i], right[i], 1e-15);
  ExpectRow(evidence, {"unit_norm", [](const Evidence& e) { return ClippedMoments(e, [](size_t) { return 0; }); }});
  ExpectRow(evidence,
            {"unit_norm", [](const Evidence& e) { return ClippedMoments(e, [](size_t i) { return i / kCols; }); }});
  ExpectRow(evidence, {"unit_norm", [](const Evidence& e) {
                         return ClippedMoments(e, [](size_t i) { return RankOf(i) * 100 + i % kCols; });
                       }});
}

TEST(Hypotheses, EveryOneHasARow) {
  std::set<std::string> tested = {"low_precision",  "momentum_form",  "clipping_inverted", "late_weight",
                                  "ratio_of_norms", "exempt_clipped", "unit_norm"};
  for (const std::vector<Row>& rows : {GradientRows(), AdamRows()}) {
    for (const Row& row : rows) tested.insert(row.name);
  }
  std::set<std::string> all;
  for (const Hypothesis& hypothesis : Hypotheses()) EXPECT_TRUE(all.insert(std::string(hypothesis.name)).second);
  EXPECT_EQ(tested, all);
}

}  // namespace
}  // namespace plumbline::conformance
