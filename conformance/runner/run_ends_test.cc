// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/run_ends.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace plumbline::conformance {
namespace {

using reports::Verdict;
using Kind = CaseOutcome::Kind;

// Runs "", "run1", "run2", ... that end like this, each with its number as its message.
std::optional<Judgement> JudgeKinds(const std::vector<Kind>& kinds) {
  std::vector<CaseOutcome> outcomes;
  for (size_t i = 0; i < kinds.size(); ++i) outcomes.push_back({kinds[i], "end " + std::to_string(i)});
  std::vector<RunEnd> ends;
  for (size_t i = 0; i < kinds.size(); ++i) ends.push_back({&outcomes[i], i == 0 ? "" : "run" + std::to_string(i)});
  return JudgeEnds(ends);
}

TEST(JudgeEnds, SaysNothingWhereAllEndedWell) {
  EXPECT_FALSE(JudgeKinds({}));
  EXPECT_FALSE(JudgeKinds({Kind::kOk, Kind::kOk, Kind::kOk}));
}

TEST(JudgeEnds, NamesTheFirstOfTheWorstInWhateverPlaceItStands) {
  const std::vector<std::pair<Kind, Verdict>> ascending = {{Kind::kEnvironment, Verdict::kNotRun},
                                                           {Kind::kUnsupported, Verdict::kUnsupported},
                                                           {Kind::kCrashed, Verdict::kError}};
  std::vector<size_t> order = {0, 1, 2};
  do {
    std::vector<Kind> kinds = {Kind::kOk};
    for (size_t i : order) kinds.push_back(ascending[i].first);
    for (size_t i : order) kinds.push_back(ascending[i].first);
    for (size_t worst = 3; worst-- > 0;) {
      const auto judgement = JudgeKinds(kinds);
      ASSERT_TRUE(judgement);
      EXPECT_EQ(judgement->verdict, ascending[worst].second);
      const auto place = std::find(kinds.begin(), kinds.end(), ascending[worst].first) - kinds.begin();
      EXPECT_EQ(judgement->diverged_run, static_cast<size_t>(place));
      const std::string number = std::to_string(place);
      EXPECT_EQ(judgement->message, "run run" + number + ": end " + number);
      EXPECT_EQ(judgement->engine_failed, worst == 2);
      std::replace(kinds.begin(), kinds.end(), ascending[worst].first, Kind::kOk);
    }
    EXPECT_FALSE(JudgeKinds(kinds));
  } while (std::next_permutation(order.begin(), order.end()));
}

// A user's Ctrl-C, or a missing device, between a crash and the end of the trial.
TEST(JudgeEnds, AnInterruptionHidesNoErrorBeforeIt) {
  for (Kind error : {Kind::kError, Kind::kCrashed, Kind::kTimedOut, Kind::kProtocol}) {
    EXPECT_EQ(JudgeKinds({Kind::kInterrupted, error, Kind::kInterrupted})->verdict, Verdict::kError) << Name(error);
  }
  EXPECT_EQ(JudgeKinds({Kind::kOk, Kind::kInterrupted})->verdict, Verdict::kNotRun);
}

TEST(JudgeEnds, TheCasesOwnRunNeedsNoName) {
  EXPECT_EQ(JudgeKinds({Kind::kCrashed, Kind::kCrashed})->message, "end 0");
}

TEST(JudgeEnds, ARunWithoutACheckpointToResumeFromAccusesNobody) {
  const CaseOutcome ok, lacking{Kind::kEnvironment, "no room"}, crashed{Kind::kCrashed, "no checkpoint"};
  const auto judgement = JudgeEnds({{&ok}, {&lacking, "again"}, {&crashed, "resumed", 1}});
  EXPECT_EQ(judgement->verdict, Verdict::kNotRun);
  EXPECT_EQ(judgement->message, "run again: no room");
  EXPECT_EQ(JudgeEnds({{&lacking}, {&ok, "again"}, {&crashed, "resumed", 1}})->verdict, Verdict::kError);
}

TEST(NameOfRun, IsWhatTheRunsIdAddsToTheCases) {
  EXPECT_EQ(NameOfRun("exact/x/again", "exact/x"), "again");
  EXPECT_EQ(NameOfRun("exact/x/step4-unrounded", "exact/x"), "step4-unrounded");
  EXPECT_EQ(NameOfRun("exact/x", "exact/x"), "");
}

}  // namespace
}  // namespace plumbline::conformance
