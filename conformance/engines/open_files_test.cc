// SPDX-License-Identifier: Apache-2.0
#include "conformance/engines/open_files.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

namespace plumbline::conformance {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

class OpenFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    const testing::TestInfo& info = *testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(testing::TempDir()) / (std::string(info.name()) + "." + std::to_string(getpid()));
    fs::create_directories(folder_ / "out/rank0");
    fs::create_directories(folder_ / "out2");
  }

  fs::path folder_;
};

TEST_F(OpenFilesTest, AreThoseOfTheFolderAlone) {
  const std::ofstream inside(folder_ / "out/rank0/weights");
  const std::ofstream top(folder_ / "out/trace");
  const std::ofstream beside(folder_ / "out2/trace");
  { const std::ofstream closed(folder_ / "out/closed"); }
  EXPECT_EQ(OpenFilesIn(folder_ / "out", getpid()), (Strings{"rank0/weights", "trace"}));
  EXPECT_EQ(OpenFilesIn(folder_ / "out2", getpid()), Strings{"trace"});
}

TEST_F(OpenFilesTest, AreSeenThroughALinkToTheFolderAndWhenDeleted) {
  fs::create_directory_symlink(folder_ / "out", folder_ / "link");
  const std::ofstream file(folder_ / "out/moments");
  EXPECT_EQ(OpenFilesIn(folder_ / "link", getpid()), Strings{"moments"});
  fs::remove(folder_ / "out/moments");
  EXPECT_EQ(OpenFilesIn(folder_ / "link", getpid()), Strings{"moments (deleted)"});
}

TEST_F(OpenFilesTest, AreNoneOfAProcessThatHasEndedOrAFolderThatIsNotThere) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t end;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &end, WEXITED | WNOWAIT), 0);  // still a zombie
  EXPECT_EQ(OpenFilesIn(folder_ / "out", child), Strings{});
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_EQ(OpenFilesIn(folder_ / "out", child), Strings{});
  const std::ofstream file(folder_ / "out/trace");
  EXPECT_EQ(OpenFilesIn(folder_ / "absent", getpid()), Strings{});
}

}  // namespace
}  // namespace plumbline::conformance
