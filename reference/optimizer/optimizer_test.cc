// SPDX-License-Identifier: Apache-2.0
// The modular optimizers against closed forms, and as bijections of their state: what a bijection maps is never
// forgotten.
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <utility>

#include "conformance/contract/error.h"
#include "reference/optimizer/modular_momentum.h"
#include "reference/optimizer/modular_sgd.h"
#include "reference/optimizer/working_weight.h"

namespace plumbline::reference {
namespace {

Matrix One(double value) { return Matrix(1, 1, {value}); }

// Mathematical mod of integers, by its definition: adds or subtracts m until the value lies in [0, m).
int64_t ReducedByHand(int64_t x, int64_t m) {
  while (x < 0) x += m;
  while (x >= m) x -= m;
  return x;
}

TEST(ModularMomentum, WithConstantGradientFollowsItsClosedForm) {
  for (const int64_t w : {1, 2}) {
    for (const int64_t d : {0, 1, -1, 7, -40, 29, 1000}) {
      const int64_t m = 8 * (2 * w + 1);
      Matrix moment = One(0);
      Matrix master = One(5);
      int64_t expected_master = 5;
      for (int64_t t = 1; t <= 70; ++t) {
        const ModularMomentumResult result = ModularMomentum(One(static_cast<double>(d)), moment, master,
                                                             static_cast<double>(t), static_cast<double>(w));
        // M after t steps is t·D + 1 + 2 + … + t, wrapped to [−14, 14].
        const int64_t expected_moment = ReducedByHand(t * d + t * (t + 1) / 2 + 14, 29) - 14;
        expected_master = ReducedByHand(expected_master - expected_moment - t, m);
        EXPECT_EQ(result.moment[0], static_cast<double>(expected_moment)) << "D " << d << ", t " << t;
        EXPECT_EQ(result.master[0], static_cast<double>(expected_master)) << "D " << d << ", t " << t;
        EXPECT_EQ(result.unwrapped[0], moment[0] + static_cast<double>(d + t));
        moment = result.moment;
        master = result.master;
      }
    }
  }
}

TEST(ModularMomentum, IsABijectionOfMomentAndMaster) {
  for (const double d : {0.0, 3.0, -100.0}) {
    std::set<std::pair<double, double>> images;
    for (double moment = -14; moment <= 14; ++moment) {
      for (double master = 0; master < 24; ++master) {
        const ModularMomentumResult result = ModularMomentum(One(d), One(moment), One(master), 17, 1);
        EXPECT_TRUE(result.moment[0] >= -14 && result.moment[0] <= 14 && result.master[0] >= 0 &&
                    result.master[0] < 24);
        images.insert({result.moment[0], result.master[0]});
      }
    }
    EXPECT_EQ(images.size(), 29u * 24u) << "D " << d;
  }
}

TEST(ModularMomentum, TakesGradientAndCounterModulo29InTheMomentAndTheCounterModuloMInTheMaster) {
  const ModularMomentumResult result = ModularMomentum(One(5), One(3), One(20), 6, 1);
  const ModularMomentumResult other_gradient = ModularMomentum(One(5 - 29 * 1000), One(3), One(20), 6, 1);
  EXPECT_EQ(result.moment, other_gradient.moment);
  EXPECT_EQ(result.master, other_gradient.master);
  const ModularMomentumResult later = ModularMomentum(One(5), One(3), One(20), 6 + 29 * 24, 1);
  EXPECT_EQ(result.moment, later.moment);
  EXPECT_EQ(result.master, later.master);
  EXPECT_NE(result.moment, ModularMomentum(One(5), One(3), One(20), 6 + 24, 1).moment);
}

TEST(ModularSgd, WithConstantGradientWalksTheCircleInItsPeriod) {
  for (const int64_t d : {1, -1, 5, 24, 31, -1000003}) {
    Matrix master = One(7);
    for (int64_t step = 1; step <= 48; ++step) {
      master = ModularSgd(One(static_cast<double>(d)), master, 1);
      EXPECT_EQ(master[0], static_cast<double>(ReducedByHand(7 - step * ReducedByHand(d, 24), 24)))
          << d << ", " << step;
      if (d == 1) {
        EXPECT_EQ(master[0] == 7, step % 24 == 0) << "period m";
      }
    }
  }
}

TEST(ModularSgd, IsABijectionOfTheMaster) {
  std::set<double> images;
  for (double master = 0; master < 40; ++master) images.insert(ModularSgd(One(-13), One(master), 2)[0]);
  EXPECT_EQ(images.size(), 40u);
  EXPECT_EQ(*images.begin(), 0);
  EXPECT_EQ(*images.rbegin(), 39);
}

TEST(WorkingWeight, GivesEightMastersToEachWeight) {
  for (const int w : {1, 2, 3}) {
    for (int weight = -w; weight <= w; ++weight)
      for (int low = 0; low < 8; ++low) EXPECT_EQ(WorkingWeight(One(8 * (weight + w) + low), w)[0], weight);
    EXPECT_EQ(MasterModulus(w), 8 * (2 * w + 1));
  }
}

TEST(Optimizers, TreatEachElementAlone) {
  const Matrix gradient(1, 3, {1, -2, 0});
  const Matrix master(1, 3, {0, 23, 11});
  EXPECT_EQ(ModularSgd(gradient, master, 1), Matrix(1, 3, {23, 1, 11}));
  const ModularMomentumResult result = ModularMomentum(gradient, Matrix(1, 3, {14, -14, 0}), master, 1, 1);
  EXPECT_EQ(result.moment, Matrix(1, 3, {-13, 14, 1}));
  EXPECT_EQ(result.master, Matrix(1, 3, {12, 8, 9}));
}

TEST(Optimizers, RejectUnequalShapes) {
  EXPECT_THROW(ModularSgd(Matrix(1, 2), Matrix(2, 1), 1), contract::Error);
  EXPECT_THROW(ModularMomentum(Matrix(1, 2), Matrix(2, 1), Matrix(1, 2), 1, 1), contract::Error);
  EXPECT_THROW(ModularMomentum(Matrix(1, 2), Matrix(1, 2), Matrix(2, 1), 1, 1), contract::Error);
}

}  // namespace
}  // namespace plumbline::reference
