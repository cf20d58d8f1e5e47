// SPDX-License-Identifier: Apache-2.0
//
// Each defect of the fake engine is off until it is turned on, by id or by the command line, and then changes what the
// edit says and nothing else.

#include "conformance/defects/switch.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "conformance/defects/run_with_defects.h"
#include "conformance/defects/testing/fake_engine.h"
#include "conformance/defects/testing/fake_sum.h"

namespace plumbline::defects::testing {
namespace {

class Switch : public ::testing::Test {
 protected:
  ~Switch() override { DeactivateAll(); }

  static int Run(std::vector<std::string> arguments) {
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    return RunWithDefects(static_cast<int>(arguments.size()), argv.data(), &FakeMain);
  }
};

TEST_F(Switch, KnowsTheIdsOfTheEditFiles) {
  EXPECT_EQ(Ids(), (std::vector<std::string_view>{"T1", "T2", "T3"}));
  EXPECT_EQ(Defects()[0].title, "the last addend overwrites the sum");
  EXPECT_EQ(Defects()[0].expect, "exact: SumTo(4) is 4");
}

TEST_F(Switch, StatementReplacesInALibraryBelowTheEngine) {
  Activate("T1");
  EXPECT_EQ(SumTo(4), 4);
  EXPECT_EQ(FakeStep(4, 1), 9);
}

TEST_F(Switch, ExpressionReplacesInsideAMacroArgument) {
  Activate("T2");
  EXPECT_EQ(SumTo(4), 10);
  EXPECT_EQ(FakeStep(4, 1), 13);
}

TEST_F(Switch, OneIdTurnsOnAllItsPlaces) {
  Activate("T3");
  EXPECT_EQ(SumTo(4), 11);
  EXPECT_EQ(FakeStep(4, 1), 22);
  EXPECT_EQ(FakeStep(4, 0), 22 - 1000) << "the else of the surrounding if must still belong to it";
}

TEST_F(Switch, CanBeTurnedOffAgain) {
  Activate("T1");
  Activate("T3");
  DeactivateAll();
  EXPECT_EQ(FakeStep(4, 1), 21);
}

TEST_F(Switch, UnknownIdIsAnErrorThatListsTheKnownOnes) {
  try {
    Activate("G99");
    FAIL() << "no exception";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "unknown defect 'G99'; known are: T1, T2, T3");
  }
}

TEST_F(Switch, CommandLineIsHandedOverWithoutTheFlags) {
  EXPECT_EQ(Run({"engine", "run", "--defect", "T1", "--case", "c", "--defect=T2", "last"}), 40 + 5);
  EXPECT_EQ(LastArgument(), "last");
  EXPECT_EQ(FakeStep(4, 1), 2 * 3 + 1) << "both are on";
}

TEST_F(Switch, NoFlagIsTheCleanTwin) {
  EXPECT_EQ(Run({"engine", "describe"}), 40 + 2);
  EXPECT_EQ(FakeStep(4, 1), 21);
}

TEST_F(Switch, ListsDefectsWithoutStartingTheEngine) {
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(Run({"engine", "run", "--list-defects"}), 0);
  const std::string printed = ::testing::internal::GetCapturedStdout();
  EXPECT_EQ(printed.substr(0, printed.find('\n')),
            "T1\tthe last addend overwrites the sum\texact: SumTo(4) is 4\texact");
}

TEST_F(Switch, BadFlagIsBadUsage) {
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Run({"engine", "--defect", "G99"}), 2);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "--defect: unknown defect 'G99'; known are: T1, T2, T3\n");
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Run({"engine", "--defect"}), 2);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "--defect needs an id; --list-defects shows them\n");
}

}  // namespace
}  // namespace plumbline::defects::testing
