// SPDX-License-Identifier: Apache-2.0
// Failures made smaller, with engines that are scripts: what is told fails for the same reason and was itself run, and
// the time that was given is kept. How the search goes is conformance/cases/shrink_test's.
#include "conformance/runner/shrink_phase.h"

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <map>

#include "conformance/cases/shrink_axes.h"
#include "conformance/contract/testing/temporary_folder.h"
#include "conformance/runner/lone_case_file.h"
#include "conformance/runner/testing/script_engine.h"

namespace plumbline::conformance {
namespace {

using reports::Verdict;

// Two ranks have a mistake of their own, one has another.
constexpr const char* kNeedsTwoRanks =
    "grep -q '\"data\": *2' $case/case.json && error ranks disagree about 31 values\nerror out of memory";

Judgement EngineError(const std::string& message) {
  Judgement judgement;
  judgement.verdict = Verdict::kError;
  judgement.engine_failed = true;
  judgement.message = message;
  return judgement;
}

class ShrinkPhaseTest : public ::testing::Test {
 protected:
  ShrinkPhaseTest() {
    entry_ = plan_.cases.front();
    truths_.Finish();
  }

  std::optional<reports::ShrunkRecord>& Subject(const Judgement& judgement) {
    records_.emplace_back();
    subjects_.push_back({&entry_, judgement, &records_.back()});
    return records_.back();
  }

  // The number of cases that the candidate was given.
  int64_t Shrink(const std::string& candidate_body, double budget_s, std::stop_token stop = {}) {
    ScriptEngine candidate(folder_.path(), "candidate", candidate_body);
    const ShrinkSetting setting{{&reference_.engine(), nullptr, &candidate.engine()},
                                source_,
                                truths_,
                                folder_ / "work",
                                folder_ / "failures",
                                1,
                                budget_s,
                                [&](const std::filesystem::path& file) {
                                  files_.push_back(ReadLoneCase(file));
                                  return from_file_;
                                },
                                [](const std::filesystem::path& file) { return "run " + file.filename().string(); },
                                [&](const std::string& id, int64_t tried, double left_s) {
                                  EXPECT_GE(left_s, 0);
                                  EXPECT_LE(left_s, budget_s);
                                  progress_[id] = tried;
                                }};
    const int64_t before = candidate.NumStarts();
    ShrinkFailures(setting, subjects_, std::move(stop));
    return candidate.NumStarts() - before;
  }

  const contract::testing::TemporaryFolder folder_;
  const contract::TokenSource source_{std::vector<int32_t>(100, 1), true};
  const Plan plan_ = MakePlan(LonePlanOptions(ScriptCase()));
  Truths truths_{plan_.list, {{0, {ScriptCase().config.storage}}}, LonePlanOptions(ScriptCase()), source_};
  ScriptEngine reference_{folder_.path(), "reference", "error no truth here"};
  PlannedCase entry_;
  std::deque<std::optional<reports::ShrunkRecord>> records_;
  std::vector<ShrinkSubject> subjects_;
  std::vector<contract::Case> files_;  // that were run
  reports::CaseRecord from_file_{.verdict = Verdict::kError, .message = "ranks disagree about 2 values"};
  std::map<std::string, int64_t> progress_;
};

constexpr double kEnoughSeconds = 300;  // the search ends by itself

TEST_F(ShrinkPhaseTest, EndsAtTheSmallestThatFailsForTheSameReasonAndRunsItsFile) {
  const auto& record = Subject(EngineError("ranks disagree about 97 values"));
  Shrink(kNeedsTwoRanks, kEnoughSeconds);
  ASSERT_TRUE(record);
  EXPECT_TRUE(record->finished);
  EXPECT_EQ(record->note, "");
  ASSERT_EQ(files_.size(), 1u);
  const contract::Case& smallest = files_.front();
  EXPECT_EQ(smallest.config.data_degree, 2) << "one rank fails for another reason";
  EXPECT_EQ(smallest.config.accumulation_steps, 1);
  EXPECT_EQ(smallest.config.zero_stage, 0);
  EXPECT_EQ(smallest.steps, 1);
  EXPECT_EQ(smallest.model.exact().layers, 1);
  EXPECT_EQ(record->reduced, Reductions(ScriptCase(), smallest));
  EXPECT_EQ(record->message, "ranks disagree about 2 values");
  EXPECT_EQ(record->reproduce, "run shrunk.json");
  EXPECT_TRUE(std::filesystem::exists(folder_ / "failures" / "exact.x" / "shrunk.json"));
  EXPECT_EQ(record->tried, progress_.at("exact/x"));
}

TEST_F(ShrinkPhaseTest, ALineIsToldOnlyIfItsFileFailsToo) {
  for (Verdict verdict : {Verdict::kPass, Verdict::kFail, Verdict::kVacuous}) {
    subjects_.clear();
    const auto& record = Subject(EngineError("ranks disagree about 97 values"));
    from_file_ = {.verdict = verdict, .message = "what it says"};
    Shrink(kNeedsTwoRanks, kEnoughSeconds);
    EXPECT_EQ(record->reproduce, "");
    EXPECT_EQ(record->note, "from a file it is " + std::string(reports::Name(verdict)));
    EXPECT_NE(record->reduced, "");
  }
}

TEST_F(ShrinkPhaseTest, WhereNothingSmallerFailsNothingIsWritten) {
  const auto& record = Subject(EngineError("ranks disagree about 97 values"));
  Shrink("ok", kEnoughSeconds);
  EXPECT_TRUE(record->finished);
  EXPECT_GT(record->tried, 5);
  EXPECT_EQ(record->reduced, "");
  EXPECT_EQ(record->reproduce, "");
  EXPECT_TRUE(files_.empty());
  EXPECT_FALSE(std::filesystem::exists(folder_ / "failures"));
}

TEST_F(ShrinkPhaseTest, OneCaseOfEachReasonIsTriedAndNoneThatHasNone) {
  const auto& first = Subject(EngineError("ranks disagree about 97 values"));
  const auto& same = Subject(EngineError("ranks disagree about 3 values"));
  Judgement pass, no_truth;
  pass.verdict = Verdict::kPass;
  no_truth.no_truth = true;
  const auto& passed = Subject(pass);
  const auto& without = Subject(no_truth);
  const auto& other = Subject(EngineError("no such layer"));
  Shrink("ok", 0);
  EXPECT_TRUE(first && other);
  EXPECT_FALSE(same || passed || without);
}

TEST_F(ShrinkPhaseTest, OfABrokenEngineAFewReasonsAreEnough) {
  for (const char* word : {"one", "two", "three", "four", "five", "six", "seven"}) Subject(EngineError(word));
  Shrink("ok", 0);
  for (size_t i = 0; i < records_.size(); ++i) EXPECT_EQ(records_[i].has_value(), i < kMaxShrunk) << i;
}

// Each smaller case hangs: nothing but the deadline ends it.
TEST_F(ShrinkPhaseTest, StopsWhatRunsWhenTimeIsUpAndSharesTheTime) {
  const auto& first = Subject(EngineError("ranks disagree about 97 values"));
  const auto& second = Subject(EngineError("no such layer"));
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(Shrink("sleep 25", /*budget_s=*/1), 2);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  EXPECT_GE(seconds, 1);
  EXPECT_LT(seconds, 20) << "no hanging case was waited for";
  for (const auto* record : {&first, &second}) {
    EXPECT_FALSE((*record)->finished);
    EXPECT_EQ((*record)->tried, 1);
    EXPECT_GE((*record)->seconds, 0.4);
    EXPECT_EQ((*record)->reduced, "");
  }
}

// The very last question is not answered: that nothing smaller fails is not known, and what has failed is run.
TEST_F(ShrinkPhaseTest, WhatFailedBeforeTimeWasUpIsToldAndTheSearchNotCalledFinished) {
  const auto& record = Subject(EngineError("ranks disagree about 97 values"));
  const int64_t asked = Shrink(kNeedsTwoRanks, kEnoughSeconds);
  ASSERT_TRUE(record->finished);
  const std::string starts = (folder_ / "candidate.starts").string();
  Shrink("[ $(wc -l < '" + starts + "') -ge " + std::to_string(2 * asked) + " ] && sleep 25\n" + kNeedsTwoRanks,
         /*budget_s=*/4);
  EXPECT_FALSE(record->finished);
  ASSERT_EQ(files_.size(), 2u);
  EXPECT_EQ(files_.back().config.data_degree, 2);
  EXPECT_EQ(record->reduced, Reductions(ScriptCase(), files_.back()));
  EXPECT_EQ(record->reproduce, "run shrunk.json");
}

TEST_F(ShrinkPhaseTest, AStopRequestLeavesTheRestUntried) {
  const auto& record = Subject(EngineError("ranks disagree about 97 values"));
  std::stop_source stop;
  stop.request_stop();
  Shrink(kNeedsTwoRanks, kEnoughSeconds, stop.get_token());
  EXPECT_FALSE(record);
  EXPECT_TRUE(files_.empty());
}

TEST_F(ShrinkPhaseTest, WhatTheMachineLacksIsToldAndEndsTheSearch) {
  std::ofstream(folder_ / "work") << "a file where folders are to be";
  const auto& record = Subject(EngineError("ranks disagree about 97 values"));
  EXPECT_EQ(Shrink(kNeedsTwoRanks, kEnoughSeconds), 0);
  EXPECT_EQ(record->tried, 1);
  EXPECT_FALSE(record->finished);
  EXPECT_NE(record->note.find("cannot be made"), std::string::npos) << record->note;
  EXPECT_EQ(record->reproduce, "");
}

}  // namespace
}  // namespace plumbline::conformance
