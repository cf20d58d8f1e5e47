// SPDX-License-Identifier: Apache-2.0
#include "cli/plan_json.h"

#include <gtest/gtest.h>

namespace plumbline::cli {
namespace {

TEST(PlanJson, ListsIdsInTheirOrderAsOneObject) {
  EXPECT_EQ(ListJson({}), "{\"cases\": []}\n");
  EXPECT_EQ(ListJson({"exact/b", "exact/\"a\""}), "{\"cases\": [\"exact/b\", \"exact/\\\"a\\\"\"]}\n");
}

TEST(PlanJson, HoldsAllThatTheCoverageSays) {
  EXPECT_EQ(CoverageJson("smoke", {}), "{\"tier\": \"smoke\", \"families\": []}\n");
  const conformance::FamilyCoverage family = {.family = "exact",
                                              .axes = {{"data", {"1", "3"}}, {"stage", {}}},
                                              .cases = 7,
                                              .tuples = {{2, 5, 6}, {3, 0, 1}},
                                              .excluded = {{"data=3 stage=1", "a \"reason\""}}};
  EXPECT_EQ(
      CoverageJson("full", {family, {}}),
      "{\"tier\": \"full\", \"families\": [{\"family\": \"exact\", \"cases\": 7, "
      "\"axes\": [{\"name\": \"data\", \"values\": [\"1\", \"3\"]}, {\"name\": \"stage\", \"values\": []}], "
      "\"tuples\": [{\"strength\": 2, \"covered\": 5, \"valid\": 6}, {\"strength\": 3, \"covered\": 0, \"valid\": "
      "1}], \"excluded\": [{\"combination\": \"data=3 stage=1\", \"reason\": \"a \\\"reason\\\"\"}]}, "
      "{\"family\": \"\", \"cases\": 0, \"axes\": [], \"tuples\": [], \"excluded\": []}]}\n");
}

}  // namespace
}  // namespace plumbline::cli
