// SPDX-License-Identifier: Apache-2.0
// Which defects are killed, whose start ends then, and what is told of each. No engine is started: runs end as the test
// says.
#include "conformance/runner/defect_runs.h"

#include <gtest/gtest.h>

#include "conformance/contract/testing/temporary_folder.h"

namespace plumbline::conformance {
namespace {

using reports::CheckOutcome;
using reports::Verdict;
using Kind = CaseOutcome::Kind;

Judgement FailedBy(const std::string& check) {
  Judgement judgement;
  judgement.verdict = Verdict::kFail;
  judgement.checks = {{"trace", CheckOutcome::kPass, 1, ""}, {check, CheckOutcome::kFail, 1, "x"}};
  return judgement;
}

ListedDefect Expecting(std::vector<std::string> checks) { return {"M", "title", "exact", "", "", std::move(checks)}; }

TEST(IsKill, NeedsAnExpectedCheckWhereSomeAreNamed) {
  const ListedDefect defect = Expecting({"gradient", "loss"});
  const CaseOutcome ok;
  for (const char* check : {"gradient", "loss"}) {
    const Judgement judgement = FailedBy(check);
    EXPECT_TRUE(IsKill(defect, ok, &judgement)) << check;
  }
  const Judgement other = FailedBy("ledger");
  EXPECT_FALSE(IsKill(defect, ok, &other));
  EXPECT_FALSE(IsKill(defect, ok, nullptr));
  // A crash is not what the defect is about: the runs go on until a check has seen it.
  EXPECT_FALSE(IsKill(defect, {Kind::kCrashed}, nullptr));
  Judgement crashed;
  crashed.engine_failed = true;
  EXPECT_FALSE(IsKill(defect, {Kind::kCrashed}, &crashed));
  EXPECT_TRUE(IsKill(Expecting({"engine"}), {Kind::kCrashed}, &crashed));
}

TEST(IsKill, IsAnyFailureAndAnyBadEndWhereNoneIsNamed) {
  const ListedDefect mutant = Expecting({});
  const Judgement failed = FailedBy("ledger");
  Judgement passed = FailedBy("ledger");
  passed.verdict = Verdict::kPass;
  passed.checks.pop_back();
  EXPECT_TRUE(IsKill(mutant, {}, &failed));
  EXPECT_FALSE(IsKill(mutant, {}, &passed));
  EXPECT_FALSE(IsKill(mutant, {}, nullptr)) << "a trial of several runs is judged by all of them";
  for (Kind kind : {Kind::kCrashed, Kind::kTimedOut, Kind::kError, Kind::kProtocol}) {
    EXPECT_TRUE(IsKill(mutant, {kind}, nullptr)) << Name(kind);
  }
}

// Three mutants on one case of family exact, whose truth nobody has run.
class DefectRunsTest : public ::testing::Test {
 protected:
  DefectRunsTest() {
    truths_.Finish();
    runs_.AddTo(schedule_, truths_, description_);
  }

  static VerifyOptions Options() {
    VerifyOptions options;
    options.listed_cases_at_most = 1;
    options.listed_defects = {Expecting({}), Expecting({}), Expecting({})};
    for (size_t i = 0; i < 3; ++i) (*options.listed_defects)[i].id = "M" + std::to_string(i);
    options.listed_defects->front().expect = "any: x";
    options.listed_defects->front().hypothesis = "missing_rank";
    return options;
  }

  const PlannedCase& entry() const { return runs_.plan().cases.at("exact").front(); }

  // All runs of this defect end like this.
  void End(size_t defect, const CaseOutcome& outcome) {
    for (size_t number : schedule_.units().at(defect).numbers) {
      const ScheduledRun& run = schedule_.runs()[number];
      run.task->Take(run.index, run.out_dir, outcome);
      runs_.StopAtKill(run.task, outcome);
    }
  }
  bool Ended(size_t defect) const { return schedule_.units().at(defect).enough.stop_requested(); }

  const contract::testing::TemporaryFolder folder_;
  const contract::TokenSource source_{std::vector<int32_t>(1000, 1), true};
  const contract::EngineDescription description_;
  const Plan plan_ = MakePlan({});
  DefectRuns runs_{PlanDefects(Options()), "program"};
  Truths truths_{plan_.list, {{entry().problem, {entry().spec.config.storage}}}, {}, source_};
  Schedule schedule_{source_, folder_.path()};
};

TEST_F(DefectRunsTest, EachDefectIsAStartOfTheSwitchableEngineWithItTurnedOn) {
  ASSERT_EQ(schedule_.units().size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(schedule_.units()[i].engine->program, "program");
    EXPECT_EQ(schedule_.units()[i].engine->extra_args, (std::vector<std::string>{"--defect", "M" + std::to_string(i)}));
  }
}

TEST_F(DefectRunsTest, AKillEndsTheStartOfItsDefectAlone) {
  End(1, {Kind::kCrashed, "signal 11"});
  EXPECT_FALSE(Ended(0));
  EXPECT_TRUE(Ended(1));
  EXPECT_FALSE(Ended(2));
  runs_.StopAtKill(nullptr, {Kind::kCrashed});  // of a task that is no defect's
  EXPECT_FALSE(Ended(0) || Ended(2));
}

TEST_F(DefectRunsTest, EachRecordIsOfItsOwnDefectAndHasWhatItsEditSays) {
  End(0, {Kind::kCrashed, "signal 11"});
  End(1, {Kind::kUnsupported, "no such type"});
  End(2, {Kind::kInterrupted});
  const std::vector<reports::DefectRecord> records = runs_.Judge(/*stopped=*/false);
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0].id, "M0");
  EXPECT_EQ(records[0].expect, "any: x");
  EXPECT_EQ(records[0].hypothesis, "missing_rank");
  EXPECT_TRUE(records[0].caught);
  EXPECT_EQ(records[0].message, entry().id + ": signal 11; no step was traced");
  EXPECT_EQ(records[1].id, "M1");
  EXPECT_FALSE(records[1].caught);
  EXPECT_EQ(records[1].verdict, Verdict::kUnsupported);
  EXPECT_FALSE(records[2].caught);
  ASSERT_TRUE(runs_.ToldOf(0, false));
  EXPECT_EQ(runs_.ToldOf(0, false)->entry, &entry());
  EXPECT_EQ(runs_.ToldOf(0, false)->program->extra_args.back(), "M0");
  EXPECT_TRUE(runs_.ToldOf(0, false)->trial->judgement().engine_failed);
}

TEST_F(DefectRunsTest, WhatHasNoVerdictAfterAStopRequestIsNotRunWhateverItSays) {
  End(0, {});  // ended well, but there is no truth
  End(1, {Kind::kCrashed, "signal 11"});
  End(2, {Kind::kInterrupted, "stopped"});
  EXPECT_EQ(runs_.Judge(false)[0].verdict, Verdict::kError);
  const std::vector<reports::DefectRecord> stopped = runs_.Judge(true);
  EXPECT_EQ(stopped[0].verdict, Verdict::kNotRun);
  EXPECT_EQ(stopped[0].message, entry().id + ": interrupted");
  EXPECT_EQ(stopped[1].verdict, Verdict::kError) << "what was seen before is kept";
  EXPECT_EQ(stopped[2].verdict, Verdict::kNotRun);
}

}  // namespace
}  // namespace plumbline::conformance
