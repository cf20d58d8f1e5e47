// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/failure_reason.h"

#include <gtest/gtest.h>

#include <string>

#include "conformance/cases/exact_cases.h"

namespace plumbline::conformance {
namespace {

using reports::CheckOutcome;
using reports::Verdict;

contract::ModelSpec Model() { return ExactCases().problems.front().model; }  // two layers

// A failure of `check`, of which the divergence names `tensor`.
Judgement Failed(const std::string& check, const std::string& tensor, CheckOutcome certificate = CheckOutcome::kPass) {
  Judgement judgement;
  judgement.checks = {{"trace", CheckOutcome::kPass, 1, ""},
                      {check, CheckOutcome::kFail, 9, "differs"},
                      {"certificate", certificate, 6, ""},
                      {"liveness", CheckOutcome::kVacuous, 6, "stands still"}};
  Settle(judgement);
  if (!tensor.empty()) judgement.divergence = Divergence{3, "gradient", tensor, 1, "differs"};
  return judgement;
}

Judgement EngineError(const std::string& message) {
  Judgement judgement;
  judgement.verdict = Verdict::kError;
  judgement.engine_failed = true;
  judgement.message = message;
  return judgement;
}

TEST(FailureReason, IsTheLeadingCheckAndItsTensor) {
  const auto reason = ReasonOf(Failed("exact", "embed.weight"));
  ASSERT_TRUE(reason);
  EXPECT_EQ(reason->check, "exact");
  EXPECT_EQ(reason->tensor, "embed.weight");
  EXPECT_EQ(ReasonOf(Failed("guard of tests", ""))->check, "guard of tests") << "whose message has its name before it";
}

TEST(FailureReason, TheSameCheckAndTensorAreTheSameReason) {
  const FailureReason reason = *ReasonOf(Failed("exact", "embed.weight"));
  EXPECT_TRUE(FailsFor(reason, Model(), Failed("exact", "embed.weight")));
  EXPECT_FALSE(FailsFor(reason, Model(), Failed("exact", "pos.weight")));
  EXPECT_FALSE(FailsFor(reason, Model(), Failed("ledger", "embed.weight")));
  EXPECT_FALSE(FailsFor(reason, Model(), Failed("exact", "")));
}

TEST(FailureReason, ATensorThatIsGoneMayBeAnother) {
  const FailureReason reason = *ReasonOf(Failed("exact", "layers.1.mlp.down"));
  contract::ModelSpec model = Model();
  EXPECT_FALSE(FailsFor(reason, model, Failed("exact", "layers.0.mlp.down")));
  model.exact().layers = 1;
  EXPECT_TRUE(FailsFor(reason, model, Failed("exact", "layers.0.mlp.down")));
}

TEST(FailureReason, ACheckWithoutATensorNeedsNone) {
  const FailureReason reason = *ReasonOf(Failed("ledger", ""));
  EXPECT_TRUE(FailsFor(reason, Model(), Failed("ledger", "")));
  EXPECT_FALSE(FailsFor(reason, Model(), Failed("memory", "")));
}

TEST(FailureReason, WhatMayHaveRoundedIsNoFailureOfExactValues) {
  const FailureReason exact = *ReasonOf(Failed("exact", "embed.weight"));
  EXPECT_FALSE(FailsFor(exact, Model(), Failed("exact", "embed.weight", CheckOutcome::kVacuous)));
  const FailureReason ledger = *ReasonOf(Failed("ledger", ""));
  EXPECT_TRUE(FailsFor(ledger, Model(), Failed("ledger", "", CheckOutcome::kVacuous))) << "counts do not round";
}

TEST(FailureReason, OfAnEnginesErrorIsWhatItSaidWithoutNumbersAndNames) {
  const FailureReason reason =
      *ReasonOf(EngineError("gradient of layers.1.mlp.down[0] is 57.89, not an integer of at most 2^24, in step 0"));
  EXPECT_EQ(reason.check, "engine");
  const auto fails = [&](const std::string& message) { return FailsFor(reason, Model(), EngineError(message)); };
  EXPECT_TRUE(fails("gradient of embed.weight[7] is -nan, not an integer of at most 2^24, in step 12"));
  EXPECT_FALSE(fails("ended by signal 11"));
  EXPECT_FALSE(FailsFor(reason, Model(), Failed("exact", "")));
}

TEST(FailureReason, WhatDidNotFailHasNone) {
  for (Verdict verdict : reports::kVerdicts) {
    if (verdict == Verdict::kFail) continue;
    Judgement judgement = Failed("exact", "embed.weight");
    judgement.verdict = verdict;  // ERROR: a hang, or no truth
    EXPECT_FALSE(ReasonOf(judgement)) << reports::Name(verdict);
    EXPECT_FALSE(FailsFor(*ReasonOf(Failed("exact", "embed.weight")), Model(), judgement));
  }
}

}  // namespace
}  // namespace plumbline::conformance
