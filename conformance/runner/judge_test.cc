// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/judge.h"

#include <gtest/gtest.h>

#include "conformance/oracle/testing/example_run.h"
#include "conformance/runner/defect_judge.h"
#include "conformance/runner/exact_trial.h"

namespace plumbline::conformance {
namespace {

using reports::CheckOutcome;
using reports::Verdict;

Truth LiveTruth() {
  Truth truth;
  truth.run = MergeTraces(ExampleCase(1), ExampleTraces(1, 0)).run;
  for (const char* name : {"activation_sum", "gradient_sum", "stored", "fold_input", "gradient", "state"}) {
    truth.certificate.quantities[name] = {100, "somewhere"};
  }
  truth.checks = {{"liveness", CheckOutcome::kPass, 16, ""}, {"amplification", CheckOutcome::kPass, 100, ""}};
  return truth;
}

Observation Seen(CaseOutcome::Kind kind = CaseOutcome::Kind::kOk) {
  Observation seen;
  seen.outcome = {kind, kind == CaseOutcome::Kind::kOk ? "" : "what the engine said", 0, {}};
  if (kind != CaseOutcome::Kind::kOk) return seen;
  MergedRun merged = MergeTraces(ExampleCase(1), ExampleTraces(1, 0));
  seen.checks = merged.checks;
  seen.run = merged.run;
  return seen;
}

TEST(Judge, PassesARunThatEqualsALiveTruth) {
  const Judgement judgement = JudgeExact(ExampleCase(1), LiveTruth(), Seen());
  EXPECT_EQ(judgement.verdict, Verdict::kPass);
  EXPECT_EQ(judgement.message, "");
}

TEST(Judge, FailsOnADivergenceAndSaysWhere) {
  Observation seen = Seen();
  seen.run->steps[2].tensors[0][1].hash += 1;
  const Judgement judgement = JudgeExact(ExampleCase(1), LiveTruth(), seen);
  EXPECT_EQ(judgement.verdict, Verdict::kFail);
  EXPECT_NE(judgement.message.find("step 2: gradient of pos.weight"), std::string::npos) << judgement.message;
  ASSERT_TRUE(judgement.divergence);
}

TEST(Judge, IsVacuousWhereEqualityCouldNotHaveShownAFault) {
  for (int broken = 0; broken < 3; ++broken) {
    Truth truth = LiveTruth();
    if (broken == 0) truth.certificate.quantities["stored"].max = 1e9;
    if (broken == 1) truth.checks[0].outcome = CheckOutcome::kVacuous;
    if (broken == 2) truth.checks[1].outcome = CheckOutcome::kVacuous;
    EXPECT_EQ(JudgeExact(ExampleCase(1), truth, Seen()).verdict, Verdict::kVacuous) << broken;
  }
}

TEST(Judge, AsksTheCertificateForTheStorageTypeOfTheCase) {
  Truth truth = LiveTruth();
  truth.certificate.quantities["stored"].max = 257;
  contract::Case spec = ExampleCase(1);
  EXPECT_EQ(JudgeExact(spec, truth, Seen()).verdict, Verdict::kPass);
  spec.config.storage = contract::DType::kBF16;
  EXPECT_EQ(JudgeExact(spec, truth, Seen()).verdict, Verdict::kVacuous);
}

TEST(Judge, PrefersAFailureToVacuous) {
  Truth truth = LiveTruth();
  truth.checks[0].outcome = CheckOutcome::kVacuous;
  Observation seen = Seen();
  seen.run->steps[0].loss += 1;
  EXPECT_EQ(JudgeExact(ExampleCase(1), truth, seen).verdict, Verdict::kFail);
}

// Otherwise a right engine whose sums round would be accused.
TEST(Judge, DemandsNothingOfTheNumbersWhereTheCertificateDoesNotHold) {
  Truth truth = LiveTruth();
  truth.certificate.quantities["stored"].max = 1e9;
  Observation seen = Seen();
  seen.run->steps.at(0).loss += 1;
  EXPECT_EQ(JudgeExact(ExampleCase(1), LiveTruth(), seen).verdict, Verdict::kFail);
  EXPECT_EQ(JudgeExact(ExampleCase(1), truth, seen).verdict, Verdict::kVacuous);
  // An engine may end with the words that a gradient is no integer; one that crashes is wrong all the same.
  EXPECT_EQ(JudgeExact(ExampleCase(1), truth, Seen(CaseOutcome::Kind::kError)).verdict, Verdict::kVacuous);
  EXPECT_EQ(JudgeExact(ExampleCase(1), truth, Seen(CaseOutcome::Kind::kCrashed)).verdict, Verdict::kError);
}

TEST(Judge, FailsWhenAnyCheckOfTheTracesFailed) {
  for (size_t check = 0; check < Seen().checks.size(); ++check) {
    Observation seen = Seen();
    seen.checks[check].outcome = CheckOutcome::kFail;
    EXPECT_EQ(JudgeExact(ExampleCase(1), LiveTruth(), seen).verdict, Verdict::kFail) << seen.checks[check].name;
  }
}

TEST(Judge, NamesValuesBeforeCallsAndCallsBeforeMemory) {
  Observation seen = Seen();
  seen.checks.push_back({"memory", CheckOutcome::kFail, 6, "too many bytes are held"});
  EXPECT_EQ(JudgeExact(ExampleCase(1), LiveTruth(), seen).message, "too many bytes are held");
  seen.checks.push_back({"ledger", CheckOutcome::kFail, 6, "too many bytes are sent"});
  EXPECT_EQ(JudgeExact(ExampleCase(1), LiveTruth(), seen).message, "too many bytes are sent");
  seen.run->steps[0].loss += 1;
  EXPECT_NE(JudgeExact(ExampleCase(1), LiveTruth(), seen).message.find("loss"), std::string::npos);
}

TEST(Judge, TurnsTheEndOfTheEngineIntoAVerdict) {
  using Kind = CaseOutcome::Kind;
  for (Kind kind : {Kind::kError, Kind::kCrashed, Kind::kTimedOut, Kind::kProtocol}) {
    EXPECT_EQ(JudgeExact(ExampleCase(1), LiveTruth(), Seen(kind)).verdict, Verdict::kError) << Name(kind);
    EXPECT_EQ(JudgeExact(ExampleCase(1), LiveTruth(), Seen(kind)).message, "what the engine said");
    const bool own = kind == Kind::kError || kind == Kind::kCrashed || kind == Kind::kProtocol;
    EXPECT_EQ(JudgeExact(ExampleCase(1), LiveTruth(), Seen(kind)).engine_failed, own) << Name(kind);
  }
  EXPECT_EQ(JudgeExact(ExampleCase(1), LiveTruth(), Seen(Kind::kUnsupported)).verdict, Verdict::kUnsupported);
  EXPECT_EQ(JudgeExact(ExampleCase(1), LiveTruth(), Seen(Kind::kInterrupted)).verdict, Verdict::kNotRun);
  const Judgement lacking = JudgeExact(ExampleCase(1), LiveTruth(), Seen(Kind::kEnvironment));
  EXPECT_EQ(lacking.verdict, Verdict::kNotRun);
  EXPECT_EQ(lacking.message, "what the engine said");
  EXPECT_FALSE(lacking.engine_failed);
}

TEST(Judge, IsVacuousWithoutAnyCheck) {
  Observation seen = Seen();
  seen.checks.clear();
  seen.run.reset();
  Truth truth = LiveTruth();
  truth.checks.clear();
  // Only the certificate is left, and it compares nothing of the candidate.
  EXPECT_NE(JudgeExact(ExampleCase(1), truth, seen).verdict, Verdict::kPass);
}

TEST(Judge, AsksTheCertificateForTheStorageOfTheCase) {
  Truth truth = LiveTruth();
  truth.certificate.quantities["stored"].max = 300;
  truth.certificate.quantities["gradient"].max = 300;
  contract::Case spec = ExampleCase(1);
  EXPECT_EQ(JudgeExact(spec, truth, Seen()).verdict, Verdict::kPass);
  spec.config.storage = contract::DType::kBF16;
  EXPECT_EQ(JudgeExact(spec, truth, Seen()).verdict, Verdict::kVacuous);
}

TEST(Judge, OfARunThatResumedIsAddedToAPass) {
  const contract::ModelSpec model = ExampleCase(1).model;
  const Judgement whole = JudgeExact(ExampleCase(1), LiveTruth(), Seen());
  const Judgement good = WithResumed(whole, model, *Seen().run, Seen());
  EXPECT_EQ(good.verdict, Verdict::kPass);
  EXPECT_EQ(good.checks.back().name, "relation");

  Observation wrong = Seen();
  wrong.run->steps[1].tensors[0][0].hash += 1;
  const Judgement failed = WithResumed(whole, model, *Seen().run, wrong);
  EXPECT_EQ(failed.verdict, Verdict::kFail);
  EXPECT_NE(failed.message.find("save and resume: step 1"), std::string::npos) << failed.message;
  EXPECT_TRUE(failed.divergence);

  const Judgement crashed = WithResumed(whole, model, *Seen().run, Seen(CaseOutcome::Kind::kCrashed));
  EXPECT_EQ(crashed.verdict, Verdict::kError);
  EXPECT_EQ(crashed.message, "run resumed: what the engine said");
}

TEST(Judge, OfARunThatResumedDoesNotHideWhatWasWrongBefore) {
  Observation seen = Seen();
  seen.run->steps[2].tensors[0][1].hash += 1;
  const Judgement whole = JudgeExact(ExampleCase(1), LiveTruth(), seen);
  const Judgement judgement = WithResumed(whole, ExampleCase(1).model, *seen.run, Seen(CaseOutcome::Kind::kCrashed));
  EXPECT_EQ(judgement.verdict, Verdict::kFail);
  EXPECT_EQ(judgement.message, whole.message);
}

TEST(Judge, OfARunThatResumedFailsByItsTracesToo) {
  const Judgement whole = JudgeExact(ExampleCase(1), LiveTruth(), Seen());
  Observation resumed = Seen();
  resumed.checks.front() = {"trace", CheckOutcome::kFail, 0, "no trace"};
  resumed.run.reset();
  const Judgement judgement = WithResumed(whole, ExampleCase(1).model, *Seen().run, resumed);
  EXPECT_EQ(judgement.verdict, Verdict::kFail);
  EXPECT_EQ(judgement.message, "no trace");
}

TEST(Judge, IsAnErrorWithoutATruth) {
  Truth truth;
  truth.error = "the reference crashed";
  const Judgement judgement = JudgeExact(ExampleCase(1), truth, Seen());
  EXPECT_EQ(judgement.verdict, Verdict::kError);
  EXPECT_NE(judgement.message.find("the reference crashed"), std::string::npos);
}

// A failure that was seen before the interruption is one all the same.
TEST(UnlessInterrupted, OnlyWhatHasNoVerdictOfItsOwnIsNotRun) {
  Judgement no_truth;
  no_truth.no_truth = true;
  no_truth.message = "there is no truth: interrupted";
  for (const Judgement& judgement : {no_truth, NotStarted(Verdict::kNotRun, "no device")}) {
    EXPECT_EQ(UnlessInterrupted(judgement, false).message, judgement.message);
    EXPECT_EQ(UnlessInterrupted(judgement, true).verdict, Verdict::kNotRun);
    EXPECT_EQ(UnlessInterrupted(judgement, true).message, "interrupted");
    EXPECT_FALSE(UnlessInterrupted(judgement, true).no_truth);
  }
  for (Verdict verdict : {Verdict::kPass, Verdict::kFail, Verdict::kError, Verdict::kUnsupported, Verdict::kVacuous}) {
    EXPECT_EQ(UnlessInterrupted(NotStarted(verdict, "said"), true).verdict, verdict);
    EXPECT_EQ(UnlessInterrupted(NotStarted(verdict, "said"), true).message, "said");
  }
}

DefectFinding Finding(Verdict verdict, const std::string& failed_check = "") {
  Judgement judgement;
  judgement.verdict = verdict;
  judgement.engine_failed = verdict == Verdict::kError;
  judgement.message = "message";
  if (!failed_check.empty()) judgement.checks = {{failed_check, CheckOutcome::kFail, 1, ""}};
  return {"case", judgement};
}

TEST(JudgeDefect, IsCaughtByAFailureOrAnErrorOnly) {
  for (Verdict verdict : reports::kVerdicts) {
    const bool expected = verdict == Verdict::kFail || verdict == Verdict::kError;
    EXPECT_EQ(JudgeDefect("X", "", {Finding(Verdict::kPass), Finding(verdict)}).caught, expected) << Name(verdict);
  }
  EXPECT_FALSE(JudgeDefect("X", "", {}).caught);
  DefectFinding timed_out = Finding(Verdict::kError);
  timed_out.judgement.engine_failed = false;
  EXPECT_FALSE(JudgeDefect("X", "", {timed_out}).caught) << "an error that is not the engine's own";
}

TEST(JudgeDefect, NamesEveryCheckThatFailedOnce) {
  const auto record = JudgeDefect("X", "",
                                  {Finding(Verdict::kFail, "ledger"), Finding(Verdict::kFail, "exact"),
                                   Finding(Verdict::kFail, "ledger"), Finding(Verdict::kError)});
  EXPECT_EQ(record.caught_by, (std::vector<std::string>{"ledger", "exact", "engine"}));
  EXPECT_EQ(record.verdict, Verdict::kFail);
}

}  // namespace
}  // namespace plumbline::conformance
