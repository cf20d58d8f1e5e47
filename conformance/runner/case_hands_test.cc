// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/case_hands.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace plumbline::conformance {
namespace {

// Cases of the engine under test, with a witness's case in every fifth place and a twin's in every seventh.
std::vector<PlannedCase> Mixed(size_t count) {
  std::vector<PlannedCase> cases(count);
  for (size_t i = 0; i < count; ++i) {
    if (i % 5 == 4) cases[i].role = Role::kWitness;
    if (i % 7 == 6) cases[i].role = Role::kCleanTwin;
    if (i % 11 == 10) cases[i].role = Role::kProcesses;
  }
  return cases;
}

// What can start: all but every third.
std::vector<bool> MostStart(size_t count) {
  std::vector<bool> starts(count);
  for (size_t i = 0; i < count; ++i) starts[i] = i % 3 != 1;
  return starts;
}

TEST(DealCases, GivesEveryCaseThatStartsToOneStartOfItsOwnEngine) {
  for (size_t count : {0, 1, 3, 4, 5, 31, 200}) {
    const std::vector<PlannedCase> cases = Mixed(count);
    const std::vector<bool> starts = MostStart(count);
    const CaseHands hands = DealCases(cases, starts, 3);
    std::multiset<size_t> dealt;
    const auto take = [&](const std::vector<size_t>& hand, Role role) {
      for (size_t i : hand) {
        EXPECT_EQ(cases[i].role, role) << i;
        dealt.insert(i);
      }
      EXPECT_TRUE(std::is_sorted(hand.begin(), hand.end())) << "a start runs its cases in the order of the list";
    };
    for (const std::vector<size_t>& hand : hands.candidate) take(hand, Role::kCandidate);
    take(hands.witness, Role::kWitness);
    take(hands.twins, Role::kCleanTwin);
    take(hands.processes, Role::kProcesses);
    std::multiset<size_t> expected;
    for (size_t i = 0; i < count; ++i) {
      if (starts[i]) expected.insert(i);
    }
    EXPECT_EQ(dealt, expected) << count;
  }
}

TEST(DealCases, MakesAFewStartsPerJobAndNoneForAHandfulOfCases) {
  const auto num_hands = [](size_t count, int jobs) {
    return DealCases(std::vector<PlannedCase>(count), std::vector<bool>(count, true), jobs).candidate.size();
  };
  EXPECT_EQ(num_hands(0, 4), 1u);
  EXPECT_EQ(num_hands(7, 4), 1u);
  EXPECT_EQ(num_hands(8, 4), 2u);
  EXPECT_EQ(num_hands(31, 4), 7u);
  EXPECT_EQ(num_hands(32, 4), 8u);
  EXPECT_EQ(num_hands(1000, 4), 8u);
  EXPECT_EQ(num_hands(1000, 0), 2u);
}

TEST(DealCases, LeavesNoStartIdleWhileAnotherHasTwoMore) {
  const CaseHands hands = DealCases(std::vector<PlannedCase>(101), std::vector<bool>(101, true), 4);
  size_t least = 101, most = 0;
  for (const std::vector<size_t>& hand : hands.candidate) {
    least = std::min(least, hand.size());
    most = std::max(most, hand.size());
  }
  EXPECT_LE(most - least, 1u);
}

}  // namespace
}  // namespace plumbline::conformance
