// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/layer_stage_cases.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

#include "conformance/cases/testing/full_list.h"

namespace plumbline::conformance {
namespace {

TEST(LayerStageCases, AreLayoutsOfTheListWithAStageForEachLayer) {
  const CaseList list = ListOf(Tier::kFull);
  std::set<std::string> ids;
  for (const CaseSpec& spec : list.cases) ids.insert(spec.id);
  for (const CaseSpec& spec : LayerStageCases(list, Tier::kFull)) {
    EXPECT_TRUE(ids.insert(spec.id).second) << "twice: " << spec.id;
    const auto& model = list.problems[static_cast<size_t>(spec.problem)].model;
    EXPECT_EQ(static_cast<int64_t>(spec.config.layer_stages.size()), model.layers()) << spec.id;
    std::string stages;
    for (int64_t stage : spec.config.layer_stages) stages += std::to_string(stage);
    const std::string mark = "/layers" + stages + "-";
    const size_t at = spec.id.find(mark);
    ASSERT_NE(at, std::string::npos) << spec.id;
    EXPECT_EQ(ids.count(spec.id.substr(0, at + 1) + spec.id.substr(at + mark.size())), 1u) << spec.id;
  }
}

std::set<std::pair<int64_t, int64_t>> Meetings(const std::vector<CaseSpec>& cases) {
  std::set<std::pair<int64_t, int64_t>> pairs;
  for (const CaseSpec& spec : cases) {
    std::set<int64_t> stages(spec.config.layer_stages.begin(), spec.config.layer_stages.end());
    stages.insert(spec.config.zero_stage);
    for (int64_t a : stages) {
      for (int64_t b : stages) {
        if (a < b) pairs.insert({a, b});
      }
    }
  }
  return pairs;
}

TEST(LayerStageCases, LetEveryTwoStagesMeetAndEveryStageBeThatOfALayer) {
  for (Tier tier : {Tier::kFull, Tier::kNightly}) {
    const CaseList list = ListOf(tier);
    std::vector<CaseSpec> exact, real;
    for (const CaseSpec& spec : LayerStageCases(list, tier)) {
      const bool is_exact = list.problems[static_cast<size_t>(spec.problem)].model.is_exact();
      (is_exact ? exact : real).push_back(spec);
    }
    for (const auto& cases : {exact, real}) {
      EXPECT_EQ(Meetings(cases).size(), 6u);
      std::set<int64_t> of_layers;
      for (const CaseSpec& spec : cases)
        of_layers.insert(spec.config.layer_stages.begin(), spec.config.layer_stages.end());
      EXPECT_EQ(of_layers, (std::set<int64_t>{0, 1, 2, 3}));
    }
  }
}

TEST(LayerStageCases, AreNotInSmoke) { EXPECT_TRUE(LayerStageCases(ListOf(Tier::kSmoke), Tier::kSmoke).empty()); }

}  // namespace
}  // namespace plumbline::conformance
