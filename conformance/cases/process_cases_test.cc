// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/process_cases.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "conformance/cases/testing/full_list.h"

namespace plumbline::conformance {
namespace {

TEST(ProcessCases, AreLayoutsOfTheListUnderIdsOfTheirOwn) {
  const CaseList list = ListOf(Tier::kFull);
  std::set<std::string> ids;
  for (const CaseSpec& spec : list.cases) ids.insert(spec.id);
  for (const CaseSpec& spec : ProcessCases(list, Tier::kFull)) {
    EXPECT_EQ(ids.count(spec.id), 0u) << spec.id;
    std::string threads = spec.id;
    threads.erase(threads.find("processes-"), std::string("processes-").size());
    EXPECT_EQ(ids.count(threads), 1u) << spec.id;
    EXPECT_TRUE(ids.insert(spec.id).second) << "twice: " << spec.id;
  }
}

TEST(ProcessCases, HaveEveryFamilyStageAndBothNumbersOfRanks) {
  const CaseList list = ListOf(Tier::kFull);
  std::set<std::string> families;
  std::set<std::pair<int64_t, int64_t>> exact;
  std::set<int64_t> real;
  for (const CaseSpec& spec : ProcessCases(list, Tier::kFull)) {
    const auto& model = list.problems[static_cast<size_t>(spec.problem)].model;
    families.insert(std::string(model.family()));
    if (model.is_exact()) exact.insert({spec.config.data_degree, spec.config.zero_stage});
    if (!model.is_exact()) real.insert(spec.config.data_degree);
  }
  EXPECT_EQ(families, (std::set<std::string>{"exact", "gpt2", "llama"}));
  EXPECT_EQ(exact.size(), 8u);
  EXPECT_EQ(real, (std::set<int64_t>{2, 4}));
}

TEST(ProcessCases, HaveEveryStorageTypeInEveryFamilyAndBothKindsOfLossScale) {
  using contract::DType;
  const CaseList list = ListOf(Tier::kFull);
  std::map<std::string, std::set<DType>> types;
  std::map<bool, std::set<int64_t>> stages_of_scale;  // dynamic or not
  for (const CaseSpec& spec : ProcessCases(list, Tier::kFull)) {
    const auto& model = list.problems[static_cast<size_t>(spec.problem)].model;
    types[std::string(model.family())].insert(spec.config.storage);
    if (model.is_exact() || spec.config.storage != DType::kF16) continue;
    stages_of_scale[contract::HasDynamicLossScale(spec.config)].insert(spec.config.zero_stage);
  }
  for (const auto& [family, seen] : types) {
    EXPECT_EQ(seen, (std::set<DType>{DType::kF32, DType::kBF16, DType::kF16})) << family;
  }
  EXPECT_EQ(stages_of_scale[true], (std::set<int64_t>{1, 2, 3}));
  EXPECT_EQ(stages_of_scale[false], (std::set<int64_t>{3}));
}

TEST(ProcessCases, AreNotInSmoke) { EXPECT_TRUE(ProcessCases(ListOf(Tier::kFull), Tier::kSmoke).empty()); }

}  // namespace
}  // namespace plumbline::conformance
