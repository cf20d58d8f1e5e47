// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/reruns.h"

#include <gtest/gtest.h>

namespace plumbline::conformance {
namespace {

using reports::Verdict;

Judgement Second(Verdict verdict, const std::string& message) {
  Judgement judgement;
  judgement.verdict = verdict;
  judgement.message = message;
  return judgement;
}

TEST(FailedCases, AreThoseOfVerdictFailAndErrorAlone) {
  reports::Record record;
  for (Verdict verdict : reports::kVerdicts) record.cases.push_back({.verdict = verdict});
  EXPECT_EQ(FailedCases(record), (std::vector<size_t>{1, 2}));
  for (size_t i : FailedCases(record)) EXPECT_TRUE(Failed(record.cases[i].verdict));
}

TEST(FailedCases, AreTheFirstFewOfABrokenEngine) {
  reports::Record record;
  for (int i = 0; i < 40; ++i) record.cases.push_back({.verdict = i % 2 == 0 ? Verdict::kPass : Verdict::kFail});
  EXPECT_EQ(FailedCases(record), (std::vector<size_t>{1, 3, 5, 7, 9}));
  EXPECT_EQ(FailedCases(record, 2), (std::vector<size_t>{1, 3}));
  EXPECT_TRUE(FailedCases({}).empty());
}

TEST(RemarkOnRerun, CallsACaseFlakyOnlyIfItPassedTheSecondTime) {
  EXPECT_EQ(RemarkOnRerun("step 2: loss", Second(Verdict::kPass, "")), " (flaky: it passed when it was run again)");
  for (Verdict verdict : {Verdict::kFail, Verdict::kError, Verdict::kVacuous, Verdict::kUnsupported}) {
    EXPECT_EQ(RemarkOnRerun("step 2: loss", Second(verdict, "step 2: loss")), " (the same when run again)");
    EXPECT_EQ(RemarkOnRerun("step 2: loss", Second(verdict, "it hung")), " (run again: it hung)");
  }
}

TEST(RemarkOnRerun, SaysNothingOfARunThatWasNotMade) {
  EXPECT_EQ(RemarkOnRerun("step 2: loss", Second(Verdict::kNotRun, "interrupted")), "");
}

}  // namespace
}  // namespace plumbline::conformance
