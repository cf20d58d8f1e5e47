// SPDX-License-Identifier: Apache-2.0
// fold(x; b) against a point that walks between two walls, and its slope against the next step of that walk.
#include "reference/ops/fold.h"

#include <gtest/gtest.h>

#include "conformance/contract/error.h"

namespace plumbline::reference {
namespace {

// Walks between −b and b, one unit a step, turning at the walls.
struct Walker {
  int b;
  int position;   // at −b − 4bk, going up, the walker stands at −b
  int direction;  // of the next step
  void Step() {
    position += direction;
    if (position == b) direction = -1;
    if (position == -b) direction = 1;
  }
};

TEST(Fold, IsAWalkBetweenTheBoundsAndItsSlopeTheNextStep) {
  for (const int b : {1, 2, 3, 4, 7}) {
    const Fold fold = Fold::Triangle(b);
    Walker walker{b, -b, 1};
    for (int x = -b - 12 * b; x <= 13 * b; ++x) {
      EXPECT_EQ(fold.Value(x), walker.position) << "fold(" << x << "; " << b << ")";
      EXPECT_EQ(fold.Slope(x), walker.direction) << "slope(" << x << "; " << b << ")";
      walker.Step();
    }
  }
}

TEST(Fold, KinkAtTheUpperWallHasSlopeMinusOneAndAtTheLowerWallPlusOne) {
  const Fold fold = Fold::Triangle(2);
  EXPECT_EQ(fold.Slope(2), -1);
  EXPECT_EQ(fold.Slope(-2), 1);
  EXPECT_EQ(fold.Slope(1), 1);
  EXPECT_EQ(fold.Slope(-3), -1);
}

TEST(Fold, IsContinuousWithThatSlopeBetweenIntegers) {
  const Fold fold = Fold::Triangle(3);
  for (double x = -20; x <= 20; x += 0.25) EXPECT_EQ(fold.Value(x + 0.25) - fold.Value(x), 0.25 * fold.Slope(x)) << x;
}

TEST(Fold, OfAMatrixIsElementwise) {
  const Matrix x(2, 3, {-5, -2, 0, 2, 3, 5});
  EXPECT_EQ(Fold::Triangle(2).Value(x), Matrix(2, 3, {1, -2, 0, 2, 1, -1}));
  EXPECT_EQ(Fold::Triangle(2).Slope(x), Matrix(2, 3, {-1, 1, 1, -1, -1, -1}));
  EXPECT_EQ(Fold::Triangle(2).Value(Matrix(0, 3)), Matrix(0, 3));
}

TEST(Fold, IdentityChangesNothingAndHasSlopeOne) {
  for (const double x : {-1e9, -2.5, 0.0, 0.25, 7.0}) {
    EXPECT_EQ(Fold::Identity().Value(x), x);
    EXPECT_EQ(Fold::Identity().Slope(x), 1);
  }
}

TEST(Fold, RejectsABoundThatIsNotPositive) {
  EXPECT_THROW(Fold::Triangle(0), contract::Error);
  EXPECT_THROW(Fold::Triangle(-1), contract::Error);
}

}  // namespace
}  // namespace plumbline::reference
