// SPDX-License-Identifier: Apache-2.0
// Units of vectors, rows and columns: every element once, in its unit, however slices are cut.
#include "optimized/partition/norm_unit_plan.h"

#include <gtest/gtest.h>

#include "conformance/contract/error.h"

namespace plumbline::optimized {
namespace {

using Runs = std::vector<UnitRun>;

TEST(NormUnitPlan, NumbersUnitsInTheOrderOfParametersAndLeavesOutWhatHasNone) {
  // [3, 4] by rows, a vector of 5, one that is not clipped, [3, 4] by columns.
  const std::vector<UnitForm> forms = {{12, 3, 4}, {5, 1, 5}, {7, 0, 0}, {12, 4, 1}};
  const NormUnitPlan plan = PlanNormUnits(forms);
  EXPECT_EQ(plan.num_units, 8);
  EXPECT_EQ(plan.places[0].first_unit, 0);
  EXPECT_EQ(plan.places[1].first_unit, 3);
  EXPECT_EQ(plan.places[2].num_units, 0);
  EXPECT_EQ(plan.places[3].first_unit, 4);
  EXPECT_EQ(PlanNormUnits({}).num_units, 0);
}

TEST(NormUnitPlan, RunsOfRowsBreakAtRowsOfColumnsAtRowsTooAndOfAVectorNowhere) {
  const std::vector<UnitForm> forms = {{12, 3, 4}, {5, 1, 5}, {12, 4, 1}};
  const NormUnitPlan plan = PlanNormUnits(forms);
  EXPECT_EQ(RunsOf(plan.places[0], 2, 11), (Runs{{2, 4, 0, false}, {4, 8, 1, false}, {8, 11, 2, false}}));
  EXPECT_EQ(RunsOf(plan.places[1], 1, 5), (Runs{{1, 5, 3, false}}));
  EXPECT_EQ(RunsOf(plan.places[2], 2, 11), (Runs{{2, 4, 6, true}, {4, 8, 4, true}, {8, 11, 4, true}}));
  EXPECT_EQ(RunsOf(plan.places[2], 3, 3), Runs{});
}

// A row of one element, a matrix of one row and one of one column.
TEST(NormUnitPlan, DegenerateMatricesHaveTheirUnitsToo) {
  const std::vector<UnitForm> forms = {{3, 3, 1}, {4, 1, 4}, {4, 4, 1}, {3, 1, 1}};
  const NormUnitPlan plan = PlanNormUnits(forms);
  EXPECT_EQ(RunsOf(plan.places[0], 0, 3), (Runs{{0, 3, 0, true}}));
  EXPECT_EQ(RunsOf(plan.places[1], 0, 4), (Runs{{0, 4, 3, false}}));
  EXPECT_EQ(RunsOf(plan.places[2], 1, 4), (Runs{{1, 4, 5, true}}));
  EXPECT_EQ(RunsOf(plan.places[3], 0, 3), (Runs{{0, 3, 8, false}}));
}

// Against the division that defines a row and a column, for all cuts into two.
TEST(NormUnitPlan, EveryElementIsOnceInItsUnitForEveryCut) {
  for (const int64_t rows : {1, 2, 3, 7}) {
    for (const int64_t cols : {1, 2, 5, 32, 33}) {
      for (const bool by_rows : {true, false}) {
        const int64_t numel = rows * cols;
        const std::vector<UnitForm> forms = {{9, 1, 9},
                                             by_rows ? UnitForm{numel, rows, cols} : UnitForm{numel, cols, 1}};
        const UnitPlace place = PlanNormUnits(forms).places[1];
        for (int64_t cut = 0; cut <= numel; ++cut) {
          int64_t next = 0;
          for (const auto& [begin, end] : {std::pair{int64_t{0}, cut}, std::pair{cut, numel}}) {
            for (const UnitRun& run : RunsOf(place, begin, end)) {
              ASSERT_EQ(run.begin, next);
              ASSERT_GT(run.end, run.begin);
              for (int64_t i = run.begin; i < run.end; ++i) {
                const int64_t unit = run.first_unit + (run.ascends ? i - run.begin : 0);
                ASSERT_EQ(unit, 1 + (by_rows ? i / cols : i % cols)) << rows << " x " << cols << " at " << i;
              }
              next = run.end;
            }
          }
          ASSERT_EQ(next, numel);
        }
      }
    }
  }
}

TEST(NormUnitPlan, RefusesWhatIsNoWholeNumberOfRounds) {
  for (const UnitForm& form : {UnitForm{12, 5, 1}, {12, 3, 3}, {12, 3, 0}, {12, -1, 4}}) {
    EXPECT_THROW(PlanNormUnits(std::span(&form, 1)), contract::Error);
  }
}

}  // namespace
}  // namespace plumbline::optimized
