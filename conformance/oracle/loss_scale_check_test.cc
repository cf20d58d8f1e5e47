// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/loss_scale_check.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace plumbline::conformance {
namespace {

using contract::DynamicLossScale;
using contract::LossScaler;
using reports::CheckOutcome;

// Scales and hystereses after each of the steps: 's' is skipped, '.' is not.
std::string After(const DynamicLossScale& settings, LossScaler scaler, const std::string& steps) {
  std::string text;
  for (char step : steps) {
    scaler = NextLossScaler(settings, scaler, step == 's');
    text += (text.empty() ? "" : " ") + std::to_string(static_cast<int64_t>(scaler.scale)) + "/" +
            std::to_string(scaler.hysteresis);
  }
  return text;
}

DynamicLossScale Settings(int64_t window, int64_t hysteresis, bool consecutive, int64_t min = 1) {
  return {3, window, hysteresis, consecutive, min};
}

TEST(NextLossScaler, DoublesAfterEachWindowCountedFromBeforeTheFirstStep) {
  EXPECT_EQ(After(Settings(3, 1, false), {8, 0, -1, 1}, "......."), "8/1 8/1 16/1 16/1 16/1 32/1 32/1");
}

TEST(NextLossScaler, CountsAWindowFromTheLastOverflow) {
  EXPECT_EQ(After(Settings(3, 1, false), {8, 0, -1, 1}, ".s..."), "8/1 4/1 4/1 4/1 8/1");
}

TEST(NextLossScaler, TakesAsManyOverflowsAsItsHysteresisAndHalvesAtEachFurtherOne) {
  EXPECT_EQ(After(Settings(9, 3, false), {64, 0, -1, 3}, "ssss"), "64/2 64/1 32/1 16/1");
}

TEST(NextLossScaler, ForgivesOverflowsAfterAWindowOrAfterEachStep) {
  EXPECT_EQ(After(Settings(3, 2, false), {64, 0, -1, 2}, "s.s"), "64/1 64/1 32/1");
  EXPECT_EQ(After(Settings(3, 2, true), {64, 0, -1, 2}, "s.s"), "64/1 64/2 64/1");
  EXPECT_EQ(After(Settings(2, 2, false), {64, 0, -1, 2}, "s..s"), "64/1 64/1 128/2 128/1");
}

TEST(NextLossScaler, StaysAtItsMinimumAndBelowItsMaximum) {
  EXPECT_EQ(After(Settings(9, 1, false, 4), {8, 0, -1, 1}, "sss"), "4/1 4/1 4/1");
  EXPECT_EQ(NextLossScaler(Settings(1, 1, false), {0x1p126, 5, 3, 1}, false), (LossScaler{0x1p126, 6, 3, 1}));
}

RunDigest RunOf(const std::vector<std::pair<bool, LossScaler>>& steps) {
  RunDigest run;
  for (const auto& [skipped, scaler] : steps) {
    StepDigest& step = run.steps.emplace_back();
    step.step = static_cast<int64_t>(run.steps.size()) - 1;
    step.real.emplace();
    step.real->skipped = skipped;
    step.real->loss_scaler = scaler;
  }
  return run;
}

TEST(CheckLossScale, FollowsTheEnginesOwnSkips) {
  const DynamicLossScale settings = Settings(2, 1, false);
  RunDigest run = RunOf({{false, {8, 1, -1, 1}}, {true, {4, 2, 1, 1}}, {false, {4, 3, 1, 1}}, {false, {8, 4, 1, 1}}});
  const RealResult result = CheckLossScale(settings, {8, 0, -1, 1}, run);
  EXPECT_EQ(result.check.outcome, CheckOutcome::kPass);
  EXPECT_EQ(result.check.compared, 4);
  EXPECT_EQ(CheckNothingSkipped(run).outcome, CheckOutcome::kVacuous);
  run.steps[3].real->skipped = true;
  EXPECT_EQ(CheckLossScale(settings, {8, 0, -1, 1}, run).check.detail,
            "step 3: loss_scaler is [8, 4, 1, 1], the formula says [2, 4, 3, 1] after [4, 3, 1, 1] and a skipped step");
}

TEST(CheckLossScale, SeesEachOfTheFourNumbers) {
  const LossScaler right{8, 1, -1, 1};
  for (const LossScaler& wrong : {LossScaler{16, 1, -1, 1}, {8, 2, -1, 1}, {8, 1, 0, 1}, {8, 1, -1, 2}}) {
    EXPECT_EQ(CheckLossScale(Settings(3, 1, false), {8, 0, -1, 1}, RunOf({{false, wrong}})).check.outcome,
              CheckOutcome::kFail);
  }
  EXPECT_EQ(CheckLossScale(Settings(3, 1, false), {8, 0, -1, 1}, RunOf({{false, right}})).check.outcome,
            CheckOutcome::kPass);
}

TEST(CheckLossScale, DemandsAReportAndStepsAtAll) {
  RunDigest run = RunOf({{false, {8, 1, -1, 1}}});
  run.steps[0].real->loss_scaler.reset();
  const RealResult result = CheckLossScale(Settings(3, 1, false), {8, 0, -1, 1}, run);
  EXPECT_EQ(result.check.detail,
            "step 0: loss_scaler is not reported, the formula says [8, 1, -1, 1] after [8, 0, -1, 1]");
  ASSERT_TRUE(result.divergence);
  EXPECT_EQ(result.divergence->quantity, "loss_scaler");
  EXPECT_EQ(CheckLossScale(Settings(3, 1, false), {8, 0, -1, 1}, {}).check.outcome, CheckOutcome::kVacuous);
}

}  // namespace
}  // namespace plumbline::conformance
