// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/defect_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

namespace plumbline::conformance {
namespace {

ListedDefect Listed(const std::string& id, const std::string& family) {
  return {id, "title", family, "any: x", "", {}};
}

VerifyOptions OfMutants() {
  VerifyOptions options;
  options.listed_defects = {Listed("M1", "exact"), Listed("M2", "gpt2"), Listed("M3", "exact"), Listed("M4", "exact"),
                            Listed("M5", "gpt2")};
  options.plan.timeout_s = 60;
  options.listed_timeout_s = 7;
  return options;
}

std::vector<std::string> Ids(const auto& entries) {
  std::vector<std::string> ids;
  for (const auto& entry : entries) ids.push_back(entry.id);
  return ids;
}

TEST(PlanDefects, IsEmptyWithoutASelfTest) {
  VerifyOptions options = OfMutants();
  options.run_defects = false;
  const DefectPlan plan = PlanDefects(options);
  EXPECT_TRUE(plan.defects.empty() && plan.cases.empty() && plan.twins.empty());
}

TEST(PlanDefects, TriesThePlantedOnesUnlessOthersAreListed) {
  VerifyOptions options;
  const DefectPlan smoke = PlanDefects(options);
  EXPECT_EQ(smoke.defects.size(), std::size(kSmokeDefects));
  for (const auto& [family, cases] : smoke.cases) EXPECT_EQ(cases.size(), kSmokeDefectCases) << family;
  EXPECT_EQ(smoke.twins.size(), kSmokeDefectCases * smoke.cases.size());
  options.all_defects = true;
  EXPECT_GT(PlanDefects(options).defects.size(), smoke.defects.size());
  options.listed_defects = OfMutants().listed_defects;
  EXPECT_EQ(Ids(PlanDefects(options).defects), (std::vector<std::string>{"M1", "M2", "M3", "M4", "M5"}));
}

// Each family's clean twin runs what its defects run: a kill on a case where the copy fails anyway would be no kill.
TEST(PlanDefects, HasATwinOfEveryCaseThatADefectIsTriedOn) {
  const DefectPlan plan = PlanDefects(OfMutants());
  std::multiset<std::string> expected;
  for (const auto& [family, cases] : plan.cases) {
    EXPECT_FALSE(cases.empty()) << family;
    for (const PlannedCase& entry : cases) {
      EXPECT_EQ(entry.role, Role::kCandidate);
      EXPECT_EQ(entry.spec.model.family(), family);
      expected.insert("clean-twin/" + entry.id);
    }
  }
  std::multiset<std::string> twins;
  for (const PlannedCase& twin : plan.twins) {
    twins.insert(twin.id);
    EXPECT_EQ(twin.role, Role::kCleanTwin);
  }
  EXPECT_EQ(twins, expected);
  EXPECT_EQ(plan.cases.size(), 2u);
}

TEST(PlanDefects, ShardsHaveEveryDefectAndEveryTwinOnce) {
  const DefectPlan whole = PlanDefects(OfMutants());
  for (int64_t count : {1, 2, 3, 7}) {
    std::multiset<std::string> defects, twins;
    for (int64_t index = 1; index <= count; ++index) {
      VerifyOptions options = OfMutants();
      options.plan.selection.shard_index = index;
      options.plan.selection.shard_count = count;
      const DefectPlan part = PlanDefects(options);
      for (const std::string& id : Ids(part.defects)) defects.insert(id);
      for (const std::string& id : Ids(part.twins)) twins.insert(id);
      for (const ListedDefect& listed : part.defects) EXPECT_TRUE(part.cases.contains(listed.family));
      EXPECT_LE(part.defects.size(), whole.defects.size() / static_cast<size_t>(count) + 1) << "shards are alike";
    }
    const std::vector<std::string> all_defects = Ids(whole.defects), all_twins = Ids(whole.twins);
    EXPECT_EQ(defects, std::multiset<std::string>(all_defects.begin(), all_defects.end())) << count;
    EXPECT_EQ(twins, std::multiset<std::string>(all_twins.begin(), all_twins.end())) << count;
  }
}

// Mutants that hang are found by a short time-out; the clean twin must not fail by it on a busy machine.
TEST(PlanDefects, GivesMutantsTheirOwnTimeOutAndTheTwinThatOfTheOtherCases) {
  const DefectPlan plan = PlanDefects(OfMutants());
  for (const auto& [family, cases] : plan.cases) {
    for (const PlannedCase& entry : cases) EXPECT_EQ(entry.spec.timeout_s, 7) << entry.id;
  }
  for (const PlannedCase& twin : plan.twins) EXPECT_EQ(twin.spec.timeout_s, 60) << twin.id;
}

TEST(PlanDefects, TriesMutantsAndTheTwinOnTheFirstCasesOnlyWhereSoAsked) {
  const DefectPlan whole = PlanDefects(OfMutants());
  for (size_t most : {size_t{0}, size_t{1}, size_t{2}, size_t{1000}}) {
    VerifyOptions options = OfMutants();
    options.listed_cases_at_most = most;
    const DefectPlan plan = PlanDefects(options);
    size_t num_cases = 0;
    for (const auto& [family, cases] : plan.cases) {
      std::vector<std::string> first = Ids(whole.cases.at(family));
      first.resize(std::min(first.size(), most));
      EXPECT_EQ(Ids(cases), first) << family;
      num_cases += cases.size();
    }
    EXPECT_EQ(plan.twins.size(), num_cases);
  }
}

}  // namespace
}  // namespace plumbline::conformance
