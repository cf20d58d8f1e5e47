// SPDX-License-Identifier: Apache-2.0
#include "reference/ops/inverted_dropout.h"

#include <gtest/gtest.h>

#include <cmath>

#include "conformance/contract/error.h"
#include "reference/testing/random_matrix.h"

namespace plumbline::reference {
namespace {

using contract::Site;

constexpr DropoutSite kSite{11, Site::kDropoutScores, 3, 2, 35};

TEST(KeepMask, KeepsWhereTheWordOfTheElementIsAtLeastTheThreshold) {
  constexpr double kDrop = 0.3;
  const auto threshold = static_cast<uint32_t>(std::floor(kDrop * 4294967296.0));
  const Matrix mask = KeepMask(kSite, 6, 5, kDrop);
  for (int64_t i = 0; i < mask.numel(); ++i)
    EXPECT_EQ(mask[i], contract::Draw(11, Site::kDropoutScores, 3, 2, 35 + i) >= threshold ? 1 : 0) << i;
}

TEST(KeepMask, KeepsAnElementWhoseWordIsTheThresholdItself) {
  const uint32_t word = contract::Draw(11, Site::kDropoutScores, 3, 2, 35);
  const double p = word / 4294967296.0;  // exact
  EXPECT_EQ(KeepMask(kSite, 1, 1, p)[0], 1);
  EXPECT_EQ(KeepMask(kSite, 1, 1, (word + 1.0) / 4294967296.0)[0], 0);
}

TEST(KeepMask, DropsAboutTheShareThatIsAskedFor) {
  for (const double p : {0.1, 0.5, 0.9}) {
    const Matrix mask = KeepMask(kSite, 100, 100, p);
    double kept = 0;
    for (int64_t i = 0; i < mask.numel(); ++i) kept += mask[i];
    const double deviation = std::sqrt(p * (1 - p) / 10'000);
    EXPECT_NEAR(kept / 10'000, 1 - p, 4 * deviation) << p;
  }
}

TEST(KeepMask, DependsOnEveryCoordinate) {
  const Matrix mask = KeepMask(kSite, 8, 8, 0.5);
  for (const DropoutSite& other :
       {DropoutSite{12, kSite.site, 3, 2, 35}, DropoutSite{11, Site::kDropoutMlpOut, 3, 2, 35},
        DropoutSite{11, kSite.site, 4, 2, 35}, DropoutSite{11, kSite.site, 3, 1, 35},
        DropoutSite{11, kSite.site, 3, 2, 36}})
    EXPECT_NE(mask, KeepMask(other, 8, 8, 0.5));
}

TEST(InvertedDrop, ScalesWhatIsKeptByTheKeepProbability) {
  EXPECT_EQ(InvertedDrop(Matrix(1, 4, {3, 4, -6, 6}), Matrix(1, 4, {1, 0, 1, 0}), 0.25), Matrix(1, 4, {4, 0, -8, 0}));
}

TEST(InvertedDrop, IsItsOwnAdjoint) {
  const Matrix x = RandomIntegers(1, 7, 3, 9);
  const Matrix y = RandomIntegers(2, 7, 3, 9);
  const Matrix mask = KeepMask(kSite, 7, 3, 0.75);
  EXPECT_EQ(Inner(InvertedDrop(x, mask, 0.75), y), Inner(x, InvertedDrop(y, mask, 0.75)));
}

TEST(InvertedDrop, WithoutAMaskChangesNothing) {
  const Matrix y(1, 2, {3, -4});
  EXPECT_EQ(InvertedDrop(y, std::nullopt, 0), y);
}

TEST(InvertedDrop, RejectsAMaskOfAnotherShapeAndProbabilitiesWithoutAMask) {
  EXPECT_THROW(InvertedDrop(Matrix(1, 2), Matrix(2, 1), 0.5), contract::Error);
  EXPECT_THROW(KeepMask(kSite, 1, 1, 0), contract::Error);
  EXPECT_THROW(KeepMask(kSite, 1, 1, 1), contract::Error);
}

}  // namespace
}  // namespace plumbline::reference
