// SPDX-License-Identifier: Apache-2.0
// Which engines are asked what they can do, with shell scripts in their place.
#include "conformance/runner/verify_engines.h"

#include <gtest/gtest.h>

#include <fstream>

#include "conformance/contract/engine_protocol.h"
#include "conformance/contract/error.h"
#include "conformance/contract/testing/error_message.h"
#include "conformance/contract/testing/temporary_folder.h"

namespace plumbline::conformance {
namespace {

namespace fs = std::filesystem;
using contract::ErrorCode;
using contract::testing::ErrorMessage;

class DescribeEnginesTest : public ::testing::Test {
 protected:
  fs::path Script(const std::string& name, const std::string& body) const {
    const fs::path path = folder_ / name;
    std::ofstream(path) << "#!/bin/sh\n" << body << "\n";
    fs::permissions(path, fs::perms::owner_all);
    return path;
  }

  // Says its name, and leaves a file that shows that it was asked.
  fs::path Answering(const std::string& name) const {
    contract::EngineDescription description;
    description.name = name;
    description.version = "7";
    return Script(name, "echo asked > '" + (folder_ / (name + ".asked")).string() + "'\ncat <<'END'\n" +
                            contract::ToJson(description) + "\nEND");
  }
  bool WasAsked(const std::string& name) const { return fs::exists(folder_ / (name + ".asked")); }

  VerifyOptions Options() const {
    VerifyOptions options;
    options.engines = {Answering("reference"), Answering("optimized"), Answering("witness"), Answering("switchable"),
                       Answering("processes")};
    return options;
  }

  const contract::testing::TemporaryFolder folder_;
};

TEST_F(DescribeEnginesTest, EachRoleHasItsOwnEngine) {
  const VerifyEngines engines = DescribeEngines(Options(), /*with_witness=*/true, /*with_processes=*/true);
  EXPECT_EQ(engines.reference.description.name, "reference");
  EXPECT_EQ(engines.Of(Role::kCandidate).description.name, "optimized");
  EXPECT_EQ(engines.Of(Role::kWitness).description.name, "witness");
  EXPECT_EQ(engines.Of(Role::kCleanTwin).description.name, "switchable");
  EXPECT_EQ(engines.Of(Role::kProcesses).description.name, "processes");
  EXPECT_EQ(engines.Of(Role::kCleanTwin).program.program, folder_ / "switchable");
  EXPECT_FALSE(engines.absent);
}

TEST_F(DescribeEnginesTest, WhatIsNotNeededIsNotStarted) {
  VerifyOptions options = Options();
  options.run_defects = false;
  DescribeEngines(options, /*with_witness=*/false);
  EXPECT_FALSE(WasAsked("witness"));
  EXPECT_FALSE(WasAsked("switchable"));
  EXPECT_FALSE(WasAsked("processes"));
  EXPECT_TRUE(WasAsked("optimized"));
}

TEST_F(DescribeEnginesTest, SomebodyElsesEngineIsAskedInThePlaceOfOurs) {
  VerifyOptions options = Options();
  options.foreign_engine = EngineProgram{Answering("theirs"), {"--fast"}};
  const VerifyEngines engines = DescribeEngines(options, false);
  EXPECT_EQ(engines.candidate.description.name, "theirs");
  EXPECT_EQ(engines.candidate.program.extra_args, std::vector<std::string>{"--fast"});
  EXPECT_FALSE(WasAsked("optimized"));
}

TEST_F(DescribeEnginesTest, OneThatLacksSomethingOnThisMachineIsAbsentAndNamed) {
  VerifyOptions options = Options();
  options.foreign_engine = EngineProgram{Script("theirs", "echo no device >&2; exit 4"), {}};
  const VerifyEngines engines = DescribeEngines(options, false);
  ASSERT_TRUE(engines.absent);
  EXPECT_NE(engines.absent->find("theirs"), std::string::npos) << *engines.absent;
  EXPECT_EQ(engines.candidate.description.name, "theirs");
}

TEST_F(DescribeEnginesTest, AnyOtherFailureAndOneOfOurOwnEnginesIsAnError) {
  VerifyOptions options = Options();
  options.foreign_engine = EngineProgram{Script("theirs", "exit 1"), {}};
  ErrorMessage(ErrorCode::kInvalidArgument, [&] { DescribeEngines(options, false); });
  VerifyOptions broken = Options();
  broken.engines.optimized = Script("broken", "exit 4");
  ErrorMessage(ErrorCode::kEnvironment, [&] { DescribeEngines(broken, false); });
}

}  // namespace
}  // namespace plumbline::conformance
