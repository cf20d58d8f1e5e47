// SPDX-License-Identifier: Apache-2.0
#include "cli/diagnosis_totals.h"

#include <gtest/gtest.h>

#include "reports/record/testing/example_divergence.h"

namespace plumbline::cli {
namespace {

using reports::DefectRecord;

DefectRecord Defect(const std::string& expect) {
  DefectRecord defect;
  defect.caught = true;
  defect.expect = expect;
  defect.divergence = reports::ExampleDivergence();
  return defect;
}

TEST(DiagnosisTotals, APlaceIsRightOnlyIfAllThatIsNamedIs) {
  EXPECT_TRUE(JudgePlace(Defect("exact: gradient, step 2, tensor layers.1.mlp.down")).right);
  EXPECT_TRUE(JudgePlace(Defect("exact: step 1 or 2")).right);
  EXPECT_TRUE(JudgePlace(Defect("exact: tensor a.b or tensor layers.1.mlp.down")).right);
  EXPECT_FALSE(JudgePlace(Defect("exact: step 20")).right);
  EXPECT_FALSE(JudgePlace(Defect("exact: step 2, tensor layers.1.mlp.up")).right);
  EXPECT_FALSE(JudgePlace(Defect("exact: step 2, rank 3")).right);  // it named two
  DefectRecord one_rank = Defect("exact: step 2, rank 3");
  one_rank.divergence->ranks = {3};
  EXPECT_TRUE(JudgePlace(one_rank).right);
  EXPECT_FALSE(JudgePlace(Defect("exact: anywhere")).named);
  DefectRecord unknown = Defect("exact: step 2");
  unknown.divergence.reset();
  EXPECT_TRUE(JudgePlace(unknown).named);
  EXPECT_FALSE(JudgePlace(unknown).right);
}

TEST(DiagnosisTotals, AHypothesisIsFoundIfItFitsAndNoneIsBetter) {
  DefectRecord defect = Defect("exact: step 2");
  defect.hypothesis = "missing_rank";
  EXPECT_TRUE(FoundHypothesis(defect));
  defect.hypothesis = "other_factor";
  EXPECT_FALSE(FoundHypothesis(defect));
  defect.divergence->hypotheses[1].fits = true;
  EXPECT_FALSE(FoundHypothesis(defect));
  defect.divergence->hypotheses[1].residual = 0;
  EXPECT_TRUE(FoundHypothesis(defect));
  defect.divergence->hypotheses.front().fits = defect.divergence->hypotheses[1].fits = false;
  EXPECT_FALSE(FoundHypothesis(defect));
}

TEST(DiagnosisTotals, TotalsCountOnlyWhatIsNamed) {
  reports::Record record;
  record.defects = {Defect("exact: step 2"), Defect("exact: step 3"), Defect("exact: anywhere"),
                    Defect("exact: step 2")};
  record.defects[0].hypothesis = "missing_rank";
  record.defects[1].hypothesis = "sign_flipped";
  record.defects[3].caught = false;
  EXPECT_EQ(DiagnosisTotals(record),
            "Of those caught: place right in 1 of 2 whose edit names step, tensor or rank; hypothesis right in 1 of 2 "
            "whose edit names one; none claimed in 0 of the other 1.\n");
}

TEST(DiagnosisTotals, SaysNothingWhereNothingWasCaught) {
  reports::Record record;
  EXPECT_EQ(DiagnosisTotals(record), "");
  record.defects = {Defect("exact: step 2")};
  record.defects.front().caught = false;
  EXPECT_EQ(DiagnosisTotals(record), "");
}

}  // namespace
}  // namespace plumbline::cli
