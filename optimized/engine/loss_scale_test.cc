// SPDX-License-Identifier: Apache-2.0
// Storage in fp16 with a static loss scale, from folder to traces: no bit may depend on the scale, and one that is too
// large must end the run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "conformance/contract/error.h"
#include "optimized/engine/testing/case_run.h"
#include "optimized/engine/testing/small_case.h"

namespace plumbline::optimized {
namespace {

using contract::CaseData;
using contract::DType;
using contract::OptimizerKind;
using testing::Combine;
using testing::Combined;
using testing::kNoLimit;
using testing::kSteps;
using testing::Layout;
using testing::MakeCase;
using testing::RunInFreshFolders;

constexpr int64_t kLossScales[] = {1, 64, 256};

CaseData MakeScaledCase(const Layout& layout, OptimizerKind optimizer, bool dropout, int64_t loss_scale) {
  CaseData data = MakeCase(layout, optimizer, dropout);
  data.spec.config.loss_scale = loss_scale;
  return data;
}

void ExpectDigestsOfFp32(OptimizerKind optimizer, bool dropout, const std::vector<Layout>& layouts) {
  const CaseData plain = MakeCase({}, optimizer, dropout);
  const Combined expected = Combine(RunInFreshFolders(plain), plain);
  for (const Layout& layout : layouts) {
    for (const int64_t loss_scale : kLossScales) {
      const CaseData data = MakeScaledCase(layout, optimizer, dropout, loss_scale);
      EXPECT_EQ(Combine(RunInFreshFolders(data), data), expected) << Text(layout) << " loss scale " << loss_scale;
    }
  }
}

TEST(LossScale, ChangesNoBitInAnyStageAndLayout) {
  std::vector<Layout> layouts;
  for (const int64_t data_degree : {1, 2, 3}) {
    for (const int64_t zero_stage : {0, 1, 2, 3}) {
      for (const int64_t accumulation : {1, 2}) {
        for (const int64_t bucket : {int64_t{1}, int64_t{143}, kNoLimit}) {
          layouts.push_back({data_degree, zero_stage, accumulation, DType::kF16, bucket, {true, 300, 61, 800}});
        }
      }
    }
  }
  ExpectDigestsOfFp32(OptimizerKind::kModularMomentum, false, layouts);
}

TEST(LossScale, ChangesNoBitWithDropoutOrSgdEither) {
  ExpectDigestsOfFp32(OptimizerKind::kModularMomentum, true, {{3, 2, 2, DType::kF16, 200}, {2, 3, 3, DType::kF16, 97}});
  ExpectDigestsOfFp32(OptimizerKind::kModularSgd, false, {{3, 1, 4, DType::kF16, 97}, {1, 0, 1, DType::kF16}});
}

TEST(LossScale, ThatOverflowsEndsTheRunNamingTensorAndStep) {
  for (const int64_t zero_stage : {0, 1, 2, 3}) {
    const CaseData data =
        MakeScaledCase({2, zero_stage, 2, DType::kF16, 200}, OptimizerKind::kModularMomentum, false, 65536);
    try {
      RunInFreshFolders(data);
      ADD_FAILURE() << "stage " << zero_stage << " went on";
    } catch (const contract::Error& error) {
      EXPECT_THAT(error.what(), ::testing::ContainsRegex(R"(gradient of [a-z0-9.]+\[[0-9]+\] is .*(nan|inf))"));
      EXPECT_THAT(error.what(), ::testing::HasSubstr("in step 0 on rank"));
    }
  }
}

TEST(LossScale, OfACheckpointMayDifferFromThatOfTheRunThatGoesOn) {
  CaseData data = MakeScaledCase({3, 2, 2, DType::kF16, 200}, OptimizerKind::kModularMomentum, true, 64);
  data.spec.save_steps = {1};
  const auto whole_dir = RunInFreshFolders(data);
  CaseData resumed = data;
  resumed.spec.save_steps = {};
  resumed.spec.resume = true;
  resumed.spec.config.loss_scale = 256;
  const auto resumed_dir = RunInFreshFolders(resumed, whole_dir / "checkpoint-000001");
  for (int64_t rank = 0; rank < 3; ++rank) {
    const contract::Trace whole = contract::ReadTrace(whole_dir, rank);
    const contract::Trace rest = contract::ReadTrace(resumed_dir, rank);
    ASSERT_EQ(rest.steps.size(), static_cast<size_t>(kSteps - 2));
    for (const contract::StepRecord& record : rest.steps) {
      EXPECT_EQ(record.loss, whole.steps[record.step].loss);
      ASSERT_NO_FATAL_FAILURE(testing::ExpectSameCommAndTensors(record, whole.steps[record.step]));
    }
  }
  resumed.spec.config.storage = DType::kBF16;
  resumed.spec.config.loss_scale = 1;
  EXPECT_THROW(RunInFreshFolders(resumed, whole_dir / "checkpoint-000001"), contract::Error);
}

}  // namespace
}  // namespace plumbline::optimized
