// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/hinted_cases.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "conformance/cases/testing/full_list.h"
#include "conformance/contract/known_keys.h"
#include "conformance/contract/run_config.h"

namespace plumbline::conformance {
namespace {

std::set<std::string> AllHints() {
  std::set<std::string> hints;
  for (const char* object : {"", "bf16", "fp16", "optimizer", "scheduler", "zero_optimization"}) {
    const std::string prefix = *object == '\0' ? "" : std::string(object) + ".";
    for (const std::string_view name : contract::HintNames(object)) hints.insert(prefix + std::string(name));
  }
  return hints;
}

TEST(HintedCases, HaveEveryHintThatThereIsAndValuesThatAreAllowed) {
  const CaseList list = ListOf(Tier::kFull);
  const std::vector<CaseSpec> cases = HintedCases(list, Tier::kFull);
  EXPECT_EQ(cases.size(), 3u);
  for (const CaseSpec& spec : cases) {
    std::set<std::string> names;
    for (const auto& [name, value] : spec.config.hints) names.insert(name);
    EXPECT_EQ(names, AllHints());
    EXPECT_EQ(contract::ParseRunConfig(contract::ToJson(spec.config), "config"), spec.config) << spec.id;
    EXPECT_NE(spec.id.find("/hinted-"), std::string::npos) << spec.id;
  }
}

TEST(HintedCases, AreNotInSmoke) { EXPECT_TRUE(HintedCases(ListOf(Tier::kSmoke), Tier::kSmoke).empty()); }

}  // namespace
}  // namespace plumbline::conformance
