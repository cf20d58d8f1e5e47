// SPDX-License-Identifier: Apache-2.0
// Single cases one after the other, with engines that are scripts: what is started, what is kept, and what is no case.
#include "conformance/runner/lone_judge.h"

#include <gtest/gtest.h>

#include "conformance/contract/error.h"
#include "conformance/contract/testing/error_message.h"
#include "conformance/contract/testing/temporary_folder.h"
#include "conformance/runner/testing/script_engine.h"

namespace plumbline::conformance {
namespace {

using contract::testing::ErrorMessage;
using reports::Verdict;

class LoneJudgeTest : public ::testing::Test {
 protected:
  std::optional<Judgement> Judge(const contract::Case& spec, std::stop_token stop = {}) {
    return judge_.Judge(spec, std::move(stop));
  }

  const contract::testing::TemporaryFolder folder_;
  const contract::TokenSource source_{std::vector<int32_t>(100, 1), true};
  // Leaves no trace, so that there is no truth: the candidate's own errors are judged all the same.
  ScriptEngine reference_{folder_.path(), "reference", "error no truth here"};
  ScriptEngine candidate_{folder_.path(), "candidate", "error it is $(basename $case) of nothing"};
  LoneJudge judge_{{&reference_.engine(), nullptr, &candidate_.engine()}, source_, folder_ / "work", 1};
};

TEST_F(LoneJudgeTest, JudgesACaseAndLeavesNothingBehind) {
  const std::optional<Judgement> judgement = Judge(ScriptCase());
  ASSERT_TRUE(judgement);
  EXPECT_EQ(judgement->verdict, Verdict::kError);
  EXPECT_TRUE(judgement->engine_failed);
  EXPECT_NE(judgement->message.find("of nothing"), std::string::npos) << judgement->message;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "work" / "case"));
}

TEST_F(LoneJudgeTest, KeepsTheTruthOfAProblemForItsOtherLayouts) {
  contract::Case spec = ScriptCase();
  Judge(spec);
  EXPECT_EQ(reference_.NumStarts(), 1);
  spec.config.zero_stage = 0;
  spec.config.data_degree = 1;
  spec.config.accumulation_steps = 4;
  Judge(spec);
  EXPECT_EQ(reference_.NumStarts(), 1);
  EXPECT_EQ(candidate_.NumStarts(), 2);
  spec.seed += 1;
  Judge(spec);
  EXPECT_EQ(reference_.NumStarts(), 2) << "another seed is another truth";
  spec.model.exact().layers = 1;
  Judge(spec);
  EXPECT_EQ(reference_.NumStarts(), 3) << "another model is another truth";
  spec.steps = 2;
  Judge(spec);
  EXPECT_EQ(reference_.NumStarts(), 4) << "fewer steps are another truth";
}

TEST_F(LoneJudgeTest, AsksForNoTruthThatItIsToldOf) {
  contract::Case other = ScriptCase();
  other.model.exact().layers = 1;
  Plan plan = MakePlan(LonePlanOptions(other));
  plan.list.problems.push_back(MakePlan(LonePlanOptions(ScriptCase())).list.problems.front());
  Truths truths(plan.list, {{1, {ScriptCase().config.storage}}}, LonePlanOptions(ScriptCase()), source_);
  truths.Finish();
  PlannedCase entry = MakePlan(LonePlanOptions(ScriptCase())).cases.front();
  entry.problem = 1;
  judge_.Know(entry, truths);
  EXPECT_TRUE(Judge(ScriptCase()));
  EXPECT_EQ(reference_.NumStarts(), 0);
  EXPECT_TRUE(Judge(other));
  EXPECT_EQ(reference_.NumStarts(), 1);
}

TEST_F(LoneJudgeTest, WhatTheEngineDeclinesIsNotStarted) {
  contract::Case spec = ScriptCase();
  spec.config.zero_stage = 3;
  EXPECT_FALSE(Judge(spec));
  EXPECT_EQ(reference_.NumStarts() + candidate_.NumStarts(), 0);
}

TEST_F(LoneJudgeTest, ACaseWithoutDataIsNone) {
  contract::Case spec = ScriptCase();
  spec.model.exact().positions = 200;  // the text is shorter
  EXPECT_FALSE(Judge(spec));
  EXPECT_EQ(candidate_.NumStarts(), 0);
}

TEST_F(LoneJudgeTest, AfterAStopRequestThereIsNoJudgementAndNoHalfTruthIsKept) {
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(Judge(ScriptCase(), stop.get_token()));
  EXPECT_EQ(candidate_.NumStarts(), 0);
  const int64_t before = reference_.NumStarts();
  EXPECT_TRUE(Judge(ScriptCase()));
  EXPECT_EQ(reference_.NumStarts(), before + 1);
}

// Else "no smaller case fails" would be said of cases that were never run.
TEST_F(LoneJudgeTest, AnEngineProgramThatIsGoneIsAnErrorAndNotACaseWithoutData) {
  for (const ScriptEngine* engine : {&reference_, &candidate_}) {
    contract::Case spec = ScriptCase();
    spec.seed = engine == &reference_ ? 2 : 1;  // of a truth of its own

    const std::filesystem::path program = engine->engine().program.program;
    std::filesystem::rename(program, program.string() + ".away");
    const std::string message = ErrorMessage(contract::ErrorCode::kEnvironment, [&] { Judge(spec); });
    EXPECT_NE(message.find(program.string() + ": no such file"), std::string::npos) << message;
    std::filesystem::rename(program.string() + ".away", program);
  }
  EXPECT_TRUE(Judge(ScriptCase()));
}

TEST_F(LoneJudgeTest, WhatIsWrongWithTheMachineIsAnError) {
  std::ofstream(folder_ / "work") << "a file where folders are to be";
  ErrorMessage(contract::ErrorCode::kEnvironment, [&] { Judge(ScriptCase()); });
}

}  // namespace
}  // namespace plumbline::conformance
