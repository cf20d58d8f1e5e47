// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/gradient_limit.h"

#include <gtest/gtest.h>

#include <cmath>

#include "conformance/oracle/quantiles.h"
#include "conformance/oracle/testing/example_step.h"

namespace plumbline::conformance {
namespace {

using contract::DType;

constexpr size_t kNumSteps = 4;
using Errors = std::vector<RegionError> RegionHistory::*;

// Regions of 100 elements with normal errors of relative size `size`; the other plain engine's are `ratio` times as
// large.
std::vector<RegionHistory> Histories(double size, double ratio = 1, size_t num_regions = 30) {
  std::vector<RegionHistory> histories(num_regions);
  ExampleNumbers numbers(5);
  for (RegionHistory& history : histories) {
    history.numel = 100;
    for (size_t s = 0; s < kNumSteps; ++s) {
      history.truth.push_back({false, 2, 0.5, 50});
      double squares = 0, largest = 0;
      for (int64_t i = 0; i < history.numel; ++i) {
        const double error = size / 10 * numbers.Normal();
        history.evenness.Add(error, error);
        squares += error * error;
        largest = std::max(largest, std::abs(error));
      }
      const double norm = std::sqrt(squares);
      history.plain.push_back({norm, norm / std::sqrt(50.0), 10 * largest});
      history.other_plain.push_back({ratio * norm, ratio * norm / std::sqrt(50.0), 10 * ratio * largest});
    }
  }
  return histories;
}

TEST(ErrorEvenness, IsThreeForNormalErrorsAndTheirNumberForASingleOne) {
  ErrorEvenness normal;
  ExampleNumbers numbers(1);
  for (int i = 0; i < 100'000; ++i) {
    const double error = 1e-30 * numbers.Normal();  // no underflow: fourth powers are 1e-120
    normal.Add(error, error);
  }
  EXPECT_NEAR(normal.kurtosis(), 3, 0.1);
  ErrorEvenness single;
  for (int i = 0; i < 100; ++i) single.Add(i == 7 ? 1 : 0, 0);
  EXPECT_DOUBLE_EQ(single.kurtosis(), 100);
  EXPECT_EQ(single.count(), 100);
  EXPECT_EQ(ErrorEvenness().kurtosis(), 0);
}

TEST(EngineSpread, IsWhatTheDocumentDerives) {
  EXPECT_EQ(EngineSpread(DType::kBF16, 5), 2);
  EXPECT_EQ(EngineSpread(DType::kF32, 1), 1);
  EXPECT_DOUBLE_EQ(EngineSpread(DType::kF32, 128), std::sqrt(65.0 / 7));
  EXPECT_GE(EngineSpread(DType::kF32, 2), 1);
}

TEST(RegionLimits, FollowTheFormulaWhereThePlainEnginesAgree) {
  const auto histories = Histories(1e-1);
  const auto limits = RegionLimits(histories, DType::kBF16, 3);
  ASSERT_EQ(limits.size(), histories.size());
  for (size_t r = 0; r < limits.size(); ++r) {
    EXPECT_NEAR(limits[r].plain_norm, 1e-1, 2e-2);
    // About 400 degrees of freedom.
    const double chance = std::sqrt(FisherUpperQuantile(400, 400, kFalseAlarmRate));
    EXPECT_NEAR(limits[r].norm / (3 * chance * limits[r].plain_norm), 1, 0.1);
    // Alignment 1, participation 50, four steps.
    EXPECT_NEAR(limits[r].slope / (limits[r].norm * 6.1 / std::sqrt(50.0 * 4)), 1, 0.05);
    EXPECT_GT(limits[r].tail, 3 * chance * 10 * 1e-2 * 2);
  }
}

TEST(RegionLimits, GrowInFp32WhereErrorsVaryFromStepToStep) {
  const auto relative = [](DType storage, double factor) {
    auto histories = Histories(1e-1);
    for (size_t r = 0; r < histories.size(); ++r) {
      for (Errors engine : {&RegionHistory::plain, &RegionHistory::other_plain}) {
        (histories[r].*engine)[r % kNumSteps].norm *= factor;
      }
    }
    const RegionLimit limit = RegionLimits(histories, storage, 1).front();
    return limit.norm / limit.plain_norm;
  };
  EXPECT_GT(relative(DType::kF32, 5), 3 * relative(DType::kF32, 1));
  EXPECT_NEAR(relative(DType::kBF16, 5), relative(DType::kBF16, 1), 1e-9);
}

TEST(RegionLimits, AreProportionalToThePlainErrorsDownToHalfAnUlp) {
  const auto limits = RegionLimits(Histories(1e-3), DType::kF32, 3);
  const auto tenth = RegionLimits(Histories(1e-4), DType::kF32, 3);
  for (size_t r = 0; r < limits.size(); ++r) {
    EXPECT_NEAR(limits[r].norm / tenth[r].norm, 10, 1e-6);
    EXPECT_NEAR(limits[r].slope / tenth[r].slope, 10, 1e-6);
    EXPECT_NEAR(limits[r].tail / tenth[r].tail, 10, 1e-6);
  }
  for (const auto& [storage, half_ulp] : {std::pair(DType::kF32, 0x1p-24), std::pair(DType::kBF16, 0x1p-9)}) {
    for (const RegionLimit& limit : RegionLimits(Histories(0), storage, 3)) {
      EXPECT_EQ(limit.norm, half_ulp);
      EXPECT_EQ(limit.slope, half_ulp);
      EXPECT_EQ(limit.tail, half_ulp * 0.5 / 2 * 10);  // of the largest element, against the root mean square
    }
  }
}

TEST(RegionLimits, GrowWhereThePlainEnginesDifferEverywhereByMoreThanTheirSpreadAndChance) {
  const auto relative = [](double ratio) {
    const RegionLimit limit = RegionLimits(Histories(1e-3, ratio), DType::kF32, 3).front();
    return limit.norm / limit.plain_norm;
  };
  EXPECT_NEAR(relative(2.9) / relative(1), 1, 1e-9);  // within the spread
  EXPECT_NEAR(relative(3.1) / relative(1), 1, 1e-9);  // within the spread and chance
  // D is about (ln(6 / 3))^2 / (2 / (2 * 400)) / 0.45 = 420, which leaves one degree of freedom.
  EXPECT_GT(relative(6), 100 * relative(1));
}

TEST(RegionLimits, GoByThePlainEngineWithTheLargerErrorsWhereTheTwoRoundInDifferentPlaces) {
  auto histories = Histories(1e-3);
  const auto before = RegionLimits(histories, DType::kBF16, 2);
  for (size_t r : {3, 4, 5}) {
    for (RegionError& error : histories[r].other_plain) error.norm *= 10, error.tail *= 10, error.slope *= 10;
  }
  const auto after = RegionLimits(histories, DType::kBF16, 2);
  for (size_t r = 0; r < histories.size(); ++r) {
    const double factor = r >= 3 && r <= 5 ? 10 : 1;
    EXPECT_NEAR(after[r].norm / before[r].norm, factor, 1e-6) << r;
    EXPECT_NEAR(after[r].tail / before[r].tail, factor, 1e-6) << r;
  }
}

TEST(RegionLimits, GrowWhereFewElementsCarryTheError) {
  auto histories = Histories(1e-1);
  histories[4].evenness = {};
  for (int i = 0; i < 400; ++i) histories[4].evenness.Add(i < 4 ? 1e-3 : 1e-9, i < 4 ? 1e-3 : 1e-9);
  const auto limits = RegionLimits(histories, DType::kBF16, 3);
  EXPECT_GT(limits[4].norm / limits[4].plain_norm, 2 * limits[3].norm / limits[3].plain_norm);
}

TEST(RegionLimits, TakeTheLargestAlignmentOfTheClass) {
  auto histories = Histories(1e-3);
  const double before = RegionLimits(histories, DType::kF32, 3)[0].slope;
  for (RegionError& error : histories[20].plain) error.slope *= 5;
  for (RegionError& error : histories[20].other_plain) error.slope *= 5;
  EXPECT_NEAR(RegionLimits(histories, DType::kF32, 3)[0].slope / before, 5, 1e-9);
  histories[20].is_vector = true;  // another class
  EXPECT_NEAR(RegionLimits(histories, DType::kF32, 3)[0].slope / before, 1, 0.05);
}

TEST(RegionLimits, HaveNoSlopeAndNoFloorWhereARegionIsNull) {
  auto histories = Histories(1e-3);
  for (RegionTruth& truth : histories[0].truth) truth.null = true;
  EXPECT_EQ(RegionLimits(histories, DType::kF32, 3)[0].slope, 0);
  histories = Histories(0);
  for (RegionTruth& truth : histories[0].truth) truth.null = true;
  EXPECT_EQ(RegionLimits(histories, DType::kF32, 3)[0].norm, 0);
  EXPECT_EQ(RegionLimits(histories, DType::kF32, 3)[0].tail, 0);
}

}  // namespace
}  // namespace plumbline::conformance
