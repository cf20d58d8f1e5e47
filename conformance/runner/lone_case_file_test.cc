// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/lone_case_file.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "conformance/contract/error.h"
#include "conformance/contract/file_io.h"
#include "conformance/contract/testing/temporary_folder.h"
#include "conformance/runner/plan.h"

namespace plumbline::conformance {
namespace {

std::string Refusal(const std::filesystem::path& path) {
  try {
    ReadLoneCase(path);
  } catch (const contract::Error& error) {
    return error.what();
  }
  ADD_FAILURE() << path << " was read";
  return "";
}

TEST(LoneCaseFile, GivesBackEveryListedCaseAndItsPlan) {
  const contract::testing::TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "new" / "shrunk.json";
  const Plan list = MakePlan({});
  for (size_t i = 0; i < list.cases.size(); i += 9) {
    const PlannedCase& entry = list.cases[i];
    WriteLoneCase(path, entry.spec);
    const contract::Case read = ReadLoneCase(path);
    EXPECT_EQ(read, entry.spec);
    // The same problem, seed and time-out as in the list.
    const PlanOptions options = LonePlanOptions(read);
    const Plan plan = MakePlan(options);
    ASSERT_EQ(plan.cases.size(), 1u);
    EXPECT_EQ(plan.cases[0].spec, entry.spec);
    const Problem& expected = list.list.problems[static_cast<size_t>(entry.problem)];
    const Problem& problem = plan.list.problems.at(0);
    EXPECT_EQ(problem.model, expected.model);
    EXPECT_EQ(problem.plain, expected.plain);
    EXPECT_EQ(CaseOf(problem, entry.id, entry.spec.config, options), entry.spec);
  }
}

TEST(LoneCaseFile, IsRefusedInOneLineThatNamesFileAndField) {
  const contract::testing::TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "case.json";
  contract::Case spec = MakePlan({}).cases.front().spec;
  const std::string good = contract::ToJson(spec);
  spec.first_step = 0;
  spec.resume = true;
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"", ""},
      {"{", ""},
      {"[]", ""},
      {"{\"protocol\": 1}", "id"},
      {contract::ToJson(spec), "resume"},
      {good.substr(0, good.size() / 2), ""},
  };
  for (const auto& [content, part] : bad) {
    contract::WriteFile(path, content);
    const std::string line = Refusal(path);
    EXPECT_NE(line.find("case.json"), std::string::npos) << line;
    EXPECT_NE(line.find(part), std::string::npos) << line;
    EXPECT_EQ(line.find('\n'), std::string::npos) << line;
  }
  EXPECT_NE(Refusal(folder.path() / "absent.json").find("absent.json"), std::string::npos);
}

}  // namespace
}  // namespace plumbline::conformance
