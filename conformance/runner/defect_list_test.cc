// SPDX-License-Identifier: Apache-2.0
// What a list of defects may hold. The planted defects themselves are tried by `verify --self-test`.
#include "conformance/runner/defect_list.h"

#include <gtest/gtest.h>

#include <set>

#include "conformance/contract/error.h"
#include "conformance/contract/file_io.h"
#include "conformance/contract/testing/error_message.h"
#include "conformance/contract/testing/temporary_folder.h"

namespace plumbline::conformance {
namespace {

using contract::ErrorCode;
using contract::testing::ErrorMessage;
using contract::testing::TemporaryFolder;

std::vector<ListedDefect> Read(const std::string& text) {
  const TemporaryFolder folder;
  contract::WriteFile(folder / "list", text);
  return ReadDefectList(folder / "list");
}

TEST(ExpectedChecks, AreTheWordsBeforeTheColon) {
  EXPECT_EQ(ExpectedChecks("gradient, loss: of embed.weight"), (std::vector<std::string>{"gradient", "loss"}));
  EXPECT_EQ(ExpectedChecks("exact: step 0, with three micro-batches"), (std::vector<std::string>{"exact"}));
}

TEST(ExpectedChecks, AreNoneWhereAnyWillDo) {
  EXPECT_TRUE(ExpectedChecks("any: of the checks").empty());
  EXPECT_EQ(ExpectedChecks("any, exact: step 0").size(), 2u);
}

TEST(PlantedDefects, OfASmokeRunAreAllAmongThem) {
  EXPECT_EQ(PlantedDefects(false).size(), std::size(kSmokeDefects));
  EXPECT_GT(PlantedDefects(true).size(), std::size(kSmokeDefects));
  for (const ListedDefect& defect : PlantedDefects(true)) EXPECT_FALSE(defect.expected.empty()) << defect.id;
}

TEST(ReadDefectList, KeepsFieldsAndOrder) {
  const auto listed = Read("m2\ta + b -> a - b\tany: of the checks\tgpt2\nm1\t\texact: step 0\texact\n");
  ASSERT_EQ(listed.size(), 2u);
  EXPECT_EQ(listed[0].id, "m2");
  EXPECT_EQ(listed[0].title, "a + b -> a - b");
  EXPECT_EQ(listed[0].family, "gpt2");
  EXPECT_TRUE(listed[0].expected.empty());
  EXPECT_EQ(listed[1].expected, (std::vector<std::string>{"exact"}));
}

TEST(ReadDefectList, OfAnEmptyFileIsEmpty) { EXPECT_TRUE(Read("").empty()); }

TEST(ReadDefectList, NamesTheLineThatIsNotOne) {
  const std::string good = "m1\tt\tany: x\texact\n";
  for (const std::string bad :
       {"m2\tt\tany: x", "m2\tt\tany: x\tany", "\tt\tany: x\texact", "m2\tt\tu\tany: x\texact"}) {
    const std::string message = ErrorMessage(ErrorCode::kInvalidArgument, [&] { Read(good + bad + "\n"); });
    EXPECT_NE(message.find("list:2: "), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace plumbline::conformance
