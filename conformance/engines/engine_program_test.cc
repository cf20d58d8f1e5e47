// SPDX-License-Identifier: Apache-2.0
// `describe` of programs that answer, and of programs that do everything else (shell scripts, written by the test).
#include "conformance/engines/engine_program.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "conformance/contract/error.h"
#include "conformance/engines/monotonic.h"

namespace plumbline::conformance {
namespace {

namespace fs = std::filesystem;
using contract::ErrorCode;

constexpr char kAnswer[] =
    R"({"protocol": 1, "name": "script", "version": "7", "start": "per_rank", "batch": false, "families": ["exact"],
 "dtypes": ["fp32"], "optimizers": ["ModularSGD"], "zero_stages": [0, 2], "max_data_degree": 4, "features": []})";

class DescribeTest : public testing::Test {
 protected:
  void SetUp() override {
    const testing::TestInfo& info = *testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(testing::TempDir()) / (std::string(info.name()) + "." + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override {
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
    fs::remove_all(folder_);
  }

  fs::path File(const std::string& text, fs::perms perms = fs::perms::owner_all) {
    const fs::path path = folder_ / "engine";
    std::ofstream(path) << text;
    fs::permissions(path, perms);
    return path;
  }
  fs::path Script(const std::string& body) { return File("#!/bin/sh\n" + body + "\n"); }
  fs::path Printing(const std::string& answer) { return Script("cat <<'END'\n" + answer + "\nEND"); }

  // The message, without the beginning "engine PATH: ".
  std::string Failure(const fs::path& program, ErrorCode code, double timeout_s = 30) {
    try {
      Describe({program, {}}, timeout_s);
    } catch (const contract::Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      const std::string message = error.what();
      const std::string begin = "engine " + program.string() + ": ";
      EXPECT_EQ(message.substr(0, begin.size()), begin);
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
      return message.substr(std::min(begin.size(), message.size()));
    }
    ADD_FAILURE() << "no error";
    return "";
  }

  fs::path folder_;
};

TEST_F(DescribeTest, GivesWhatTheProgramSays) {
  const contract::EngineDescription description = Describe({Printing(kAnswer), {}}, 30);
  EXPECT_EQ(description.name, "script");
  EXPECT_FALSE(description.starts_itself);
  EXPECT_EQ(description.zero_stages, (std::vector<int64_t>{0, 2}));
}

TEST_F(DescribeTest, ExtraArgumentsComeBeforeTheCommand) {
  const fs::path program =
      Script(R"([ "$*" = "--defect G1 describe" ] && cat <<'END')" + std::string("\n") + kAnswer + "\nEND");
  EXPECT_EQ(Describe({program, {"--defect", "G1"}}, 30).name, "script");
  Failure(program, ErrorCode::kInvalidArgument);
}

TEST_F(DescribeTest, NamesAProgramThatIsNone) {
  EXPECT_EQ(Failure(folder_ / "absent", ErrorCode::kInvalidArgument), "no such file");
  EXPECT_EQ(Failure(folder_, ErrorCode::kInvalidArgument), "not a file but a folder");
  EXPECT_EQ(Failure(File("x", fs::perms::owner_read), ErrorCode::kInvalidArgument), "not executable");
}

TEST_F(DescribeTest, NamesWhyExecFailed) {
  EXPECT_EQ(Failure(File("neither script nor binary"), ErrorCode::kInvalidArgument),
            "cannot be started: Exec format error");
  EXPECT_EQ(Failure(File("#!/no/such/interpreter\n"), ErrorCode::kInvalidArgument),
            "cannot be started: No such file or directory");
}

TEST_F(DescribeTest, SilenceIsAnError) {
  EXPECT_EQ(Failure(Script("echo help >&2"), ErrorCode::kInvalidArgument),
            "describe: printed nothing; its last line: help");
}

TEST_F(DescribeTest, CrashAndExitCodesAreNamed) {
  EXPECT_EQ(Failure(Script("kill -SEGV $$"), ErrorCode::kInvalidArgument), "describe: killed by SIGSEGV");
  EXPECT_EQ(Failure(Script("echo no module named torch >&2; exit 7"), ErrorCode::kInvalidArgument),
            "describe: exit code 7; its last line: no module named torch");
  EXPECT_EQ(Failure(Script("exit 3"), ErrorCode::kUnsupported), "describe: exit code 3");
  EXPECT_EQ(Failure(Script("exit 4"), ErrorCode::kEnvironment), "describe: exit code 4");
}

TEST_F(DescribeTest, AnswerOfACrashIsNoAnswer) {
  Failure(Script("cat <<'END'\n" + std::string(kAnswer) + "\nEND\nkill -SEGV $$"), ErrorCode::kInvalidArgument);
}

TEST_F(DescribeTest, HangIsBoundedAndKilledWithItsChildren) {
  const double began = MonotonicSeconds();
  const fs::path program = Script("sleep 1000 & echo $! > " + (folder_ / "child").string() + "; echo almost >&2; wait");
  EXPECT_EQ(Failure(program, ErrorCode::kTimeout, 0.5), "describe: not finished after 0.5 s; its last line: almost");
  EXPECT_LT(MonotonicSeconds() - began, 20);
}

TEST_F(DescribeTest, EndlessAnswerIsCutOff) {
  EXPECT_EQ(Failure(Script("yes"), ErrorCode::kInvalidArgument), "describe: printed more than 1048576 bytes");
  EXPECT_EQ(Failure(Script("head -c 10000000 /dev/zero"), ErrorCode::kInvalidArgument),
            "describe: printed more than 1048576 bytes");
}

TEST_F(DescribeTest, GrandchildThatHoldsTheOutputDelaysNothing) {
  const double began = MonotonicSeconds();
  EXPECT_EQ(Describe({Script("sleep 1000 &\ncat <<'END'\n" + std::string(kAnswer) + "\nEND"), {}}, 100).name, "script");
  EXPECT_LT(MonotonicSeconds() - began, 50);
}

TEST_F(DescribeTest, DaemonOfItsOwnSessionDoesNotOutliveIt) {
  const fs::path pid_file = folder_ / "daemon";
  const std::string start = "setsid sh -c 'echo $$ > " + pid_file.string() + ".new; mv " + pid_file.string() + ".new " +
                            pid_file.string() + "; exec sleep 1000' >/dev/null 2>&1 &\n";
  const std::string wait = "while [ ! -e " + pid_file.string() + " ]; do sleep 0.01; done\n";
  Describe({Script(start + wait + "cat <<'END'\n" + std::string(kAnswer) + "\nEND"), {}}, 30);
  pid_t pid = 0;
  std::ifstream(pid_file) >> pid;
  ASSERT_GT(pid, 0);
  const auto dead = [&] {  // or a zombie whose new parent has yet to notice
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string number, name, state;
    stat >> number >> name >> state;
    return state.empty() || state == "Z";
  };
  for (int i = 0; i < 1000 && !dead(); ++i) usleep(5000);
  EXPECT_TRUE(dead());
}

TEST_F(DescribeTest, MalformedAnswersAreInvalid) {
  for (const char* answer :
       {"hello", "[]", "{}", "{\"protocol\": \"1\"}", "{\"protocol\": 1, \"name\": 3}", "\x01\x02"}) {
    Failure(Printing(answer), ErrorCode::kInvalidArgument);
  }
  Failure(Printing(std::string(kAnswer) + "more"), ErrorCode::kInvalidArgument);
}

TEST_F(DescribeTest, AnotherProtocolIsNamedBeforeItsUnknownKeysAre) {
  EXPECT_EQ(Failure(Printing("{\"protocol\": 2, \"ranks\": []}"), ErrorCode::kInvalidArgument),
            "describe: the engine speaks protocol 2, this harness protocol 1");
}

}  // namespace
}  // namespace plumbline::conformance
