// SPDX-License-Identifier: Apache-2.0
// Every way in which an engine can end a case, with a real child process each time (testing/fake_engine.cc).
#include "conformance/engines/run_cases.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "conformance/contract/error.h"
#include "conformance/engines/monotonic.h"

namespace plumbline::conformance {
namespace {

namespace fs = std::filesystem;
using Kind = CaseOutcome::Kind;

constexpr char kFakeEngine[] = "conformance/engines/testing/fake_engine";

std::string Content(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

size_t CountDescriptors() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

// A process that is gone, or a zombie that only its own parent can remove.
bool IsDead(pid_t pid) {
  const std::string stat = Content("/proc/" + std::to_string(pid) + "/stat");
  if (stat.empty()) return true;
  return stat.substr(stat.rfind(')') + 2, 1) == "Z";
}

bool DiesWithin(pid_t pid, double seconds) {
  const double until = MonotonicSeconds() + seconds;
  while (!IsDead(pid) && MonotonicSeconds() < until) usleep(2000);
  return IsDead(pid);
}

// Patient with what should succeed (the machine may be busy), quick with what is meant to hang.
RunLimits TestLimits() {
  return {.start_allowance_s = 1,
          .term_grace_s = 0.1,
          .peer_grace_s = 0.5,
          .exit_allowance_s = 1,
          .max_log_bytes = 100'000};
}

contract::EngineDescription Description(bool batch, bool per_rank = false) {
  contract::EngineDescription description;
  description.name = "fake";
  description.batch = batch;
  description.starts_itself = !per_rank;
  return description;
}

class RunCasesTest : public testing::Test {
 protected:
  void SetUp() override {
    const testing::TestInfo& info = *testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(testing::TempDir()) / (std::string(info.name()) + "." + std::to_string(getpid()));
    fs::create_directories(folder_);
    num_descriptors_ = CountDescriptors();
  }

  void TearDown() override {
    EXPECT_EQ(CountDescriptors(), num_descriptors_) << "descriptors leak";
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
    EXPECT_EQ(errno, ECHILD);
    fs::remove_all(folder_);
  }

  void Add(const std::string& behaviour, int64_t world = 1, double timeout_s = 20) {
    const std::string number = std::to_string(cases_.size());
    cases_.push_back({folder_ / ("case" + number), folder_ / ("out" + number), timeout_s, world});
    fs::create_directories(cases_.back().case_dir);
    std::ofstream(cases_.back().case_dir / "behaviour") << behaviour;
  }

  void Run(const contract::EngineDescription& description, std::stop_token stop = {},
           const std::function<void(size_t)>& after = {}, const std::vector<std::string>& extra_args = {}) {
    RunCases(
        {kFakeEngine, extra_args}, description, cases_, folder_ / "scratch", stop,
        [&](size_t index, const CaseOutcome& outcome) {
          EXPECT_TRUE(outcomes_.emplace(index, outcome).second) << "case " << index << " reported twice";
          order_.push_back(index);
          if (after) after(index);
        },
        limits_);
    EXPECT_EQ(outcomes_.size(), cases_.size());
  }

  Kind KindOf(size_t index) const { return outcomes_.at(index).kind; }
  const std::string& Message(size_t index) const { return outcomes_.at(index).message; }

  std::vector<std::string> Kinds() const {
    std::vector<std::string> names;
    for (const auto& [index, outcome] : outcomes_) names.emplace_back(Name(outcome.kind));
    return names;
  }

  size_t NumStarts() const {
    std::map<std::string, int> starts;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / "scratch")) {
      if (entry.path().extension() == ".log") ++starts[entry.path().filename().string().substr(0, 10)];
    }
    return starts.size();
  }

  pid_t Pid(const std::string& file) const { return static_cast<pid_t>(std::stol(Content(folder_ / file))); }

  fs::path folder_;
  RunLimits limits_ = TestLimits();
  std::vector<CaseRun> cases_;
  std::map<size_t, CaseOutcome> outcomes_;
  std::vector<size_t> order_;
  size_t num_descriptors_ = 0;
};

using Strings = std::vector<std::string>;

TEST_F(RunCasesTest, NoCasesNeedNoStart) {
  Run(Description(true));
  EXPECT_FALSE(fs::exists(folder_ / "scratch"));
}

TEST_F(RunCasesTest, BatchTakesOneStartAndKeepsTheOrder) {
  for (int i = 0; i < 7; ++i) Add("ok");
  Run(Description(true));
  EXPECT_EQ(Kinds(), Strings(7, "ok"));
  EXPECT_EQ(order_, (std::vector<size_t>{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(NumStarts(), 1u);
  for (const auto& [index, outcome] : outcomes_) EXPECT_GE(outcome.wall_s, 0) << index;
}

TEST_F(RunCasesTest, WithoutBatchEachCaseHasItsStart) {
  for (int i = 0; i < 3; ++i) Add("ok");
  Run(Description(false));
  EXPECT_EQ(Kinds(), Strings(3, "ok"));
  EXPECT_EQ(NumStarts(), 3u);
}

TEST_F(RunCasesTest, StatusesAreTheEnginesOwnWithBatchAndWithout) {
  for (const bool batch : {true, false}) {
    cases_.clear();
    outcomes_.clear();
    fs::remove_all(folder_);
    for (const char* behaviour : {"unsupported", "environment", "error", "ok"}) Add(behaviour);
    Run(Description(batch));
    EXPECT_EQ(Kinds(), (Strings{"unsupported", "environment", "error", "ok"})) << batch;
    EXPECT_EQ(Message(0), "no such feature");
    EXPECT_EQ(Message(1), "no device");
    EXPECT_EQ(Message(2), "it failed");
  }
}

TEST_F(RunCasesTest, CrashCostsThatCaseAlone) {
  for (const char* behaviour : {"ok", "crash", "ok", "crash", "crash", "ok"}) Add(behaviour);
  Run(Description(true));
  EXPECT_EQ(Kinds(), (Strings{"ok", "crashed", "ok", "crashed", "crashed", "ok"}));
  EXPECT_EQ(Message(1), "killed by SIGSEGV; last line of its errors: about to crash");
  EXPECT_EQ(NumStarts(), 4u);
  EXPECT_NE(Content(outcomes_.at(1).log).find("about to crash"), std::string::npos);
}

TEST_F(RunCasesTest, CrashWithoutBatchIsNamed) {
  Add("crash");
  Add("exit_7");
  Run(Description(false));
  EXPECT_EQ(KindOf(0), Kind::kCrashed);
  EXPECT_EQ(Message(0), "killed by SIGSEGV; last line of its errors: about to crash");
  EXPECT_EQ(KindOf(1), Kind::kCrashed);
  EXPECT_EQ(Message(1), "ended with exit code 7; last line of its errors: seven");
}

TEST_F(RunCasesTest, TimeOutCostsThatCaseAloneAndNamesTheLimit) {
  Add("ok");
  Add("hang", 1, 0.25);
  Add("ok");
  Run(Description(true));
  EXPECT_EQ(Kinds(), (Strings{"ok", "timed_out", "ok"}));
  EXPECT_EQ(Message(1),
            "no status after 0.25 s (time-out of the case 0.25 s); last line of its errors: waiting for ever");
  EXPECT_GE(outcomes_.at(1).wall_s, 0.25);
  EXPECT_TRUE(IsDead(Pid("out1/pid0")));
}

TEST_F(RunCasesTest, FirstCaseAlsoGetsTheTimeToStart) {
  limits_.start_allowance_s = 0.3;
  Add("hang", 1, 0.25);
  Run(Description(true));
  EXPECT_EQ(KindOf(0), Kind::kTimedOut);
  EXPECT_GE(outcomes_.at(0).wall_s, 0.55);
  EXPECT_NE(Message(0).find("no status after 0.55 s"), std::string::npos) << Message(0);
}

TEST_F(RunCasesTest, EngineThatIgnoresSigtermIsKilled) {
  limits_.start_allowance_s = 0;
  Add("hang_deaf", 1, 0.3);
  Run(Description(false));
  EXPECT_EQ(KindOf(0), Kind::kTimedOut);
  EXPECT_TRUE(IsDead(Pid("out0/pid0")));
}

TEST_F(RunCasesTest, GrandchildThatHoldsTheOutputDelaysNothingAndIsKilled) {
  Add("grandchild");
  const double began = MonotonicSeconds();
  Run(Description(false));
  EXPECT_EQ(KindOf(0), Kind::kOk) << Message(0);
  EXPECT_LT(MonotonicSeconds() - began, limits_.exit_allowance_s);
  EXPECT_TRUE(DiesWithin(Pid("out0/grandchild"), 5));
}

TEST_F(RunCasesTest, TimeOutKillsGrandchildrenToo) {
  limits_.start_allowance_s = 0;
  Add("grandchild_hang", 1, 0.3);
  Run(Description(true));
  EXPECT_EQ(KindOf(0), Kind::kTimedOut);
  EXPECT_TRUE(DiesWithin(Pid("out0/grandchild"), 5));
}

TEST_F(RunCasesTest, DaemonOfItsOwnSessionEndsWithItsStart) {
  for (const bool batch : {true, false}) {
    cases_.clear();
    outcomes_.clear();
    fs::remove_all(folder_);
    limits_.start_allowance_s = 0;
    Add("daemon");
    Add("daemon_hang", 1, 1);
    Run(Description(batch));
    EXPECT_EQ(Kinds(), (Strings{"ok", "timed_out"})) << batch;
    for (const char* file : {"out0/daemon", "out1/daemon"}) EXPECT_TRUE(DiesWithin(Pid(file), 5)) << batch << file;
  }
}

TEST_F(RunCasesTest, DaemonOfAnotherStartThatRunsAtTheSameTimeIsLeftAlone) {
  Add("daemon_hang");
  Add("daemon");
  const std::vector<CaseRun> first(cases_.begin(), cases_.begin() + 1), second(cases_.begin() + 1, cases_.end());
  std::stop_source source;
  std::jthread hanging([&] {
    RunCases(
        {kFakeEngine, {}}, Description(true), first, folder_ / "scratch", source.get_token(),
        [](size_t, const CaseOutcome&) {}, limits_);
  });
  while (!fs::exists(folder_ / "out0/daemon")) usleep(1000);
  RunCases(
      {kFakeEngine, {}}, Description(true), second, folder_ / "scratch", {}, [](size_t, const CaseOutcome&) {},
      limits_);
  EXPECT_TRUE(DiesWithin(Pid("out1/daemon"), 5));
  EXPECT_FALSE(IsDead(Pid("out0/daemon")));
  source.request_stop();
  hanging.join();
  EXPECT_TRUE(DiesWithin(Pid("out0/daemon"), 5));
}

TEST_F(RunCasesTest, ExitWithoutStatusIsAProtocolErrorOfOneCase) {
  for (const char* behaviour : {"ok", "exit_0", "exit_3", "ok"}) Add(behaviour);
  Run(Description(true));
  EXPECT_EQ(Kinds(), (Strings{"ok", "protocol", "protocol", "ok"}));
  EXPECT_EQ(Message(1), "the engine ended with exit code 0 without status.json, at entry 2 of 4 of its --batch list");
  EXPECT_EQ(Message(2), "ended with exit code 3; no status.json");
}

TEST_F(RunCasesTest, EngineThatNeverMakesProgressIsStartedOncePerCase) {
  for (int i = 0; i < 5; ++i) Add("exit_0");
  Run(Description(true));
  EXPECT_EQ(Kinds(), Strings(5, "protocol"));
  EXPECT_EQ(NumStarts(), 5u);
}

TEST_F(RunCasesTest, SkippedCasesAreNamedWithoutLosingTheStart) {
  for (const char* behaviour : {"skip", "ok", "skip", "skip", "skip", "ok", "skip"}) Add(behaviour);
  Run(Description(true));
  EXPECT_EQ(Kinds(), (Strings{"protocol", "ok", "protocol", "protocol", "protocol", "ok", "protocol"}));
  EXPECT_EQ(Message(0), "skipped: no status.json, but case 2 of the list has one and this is case 1");
  EXPECT_EQ(NumStarts(), 1u);
}

TEST_F(RunCasesTest, SkippedCaseIsNotWaitedForUntilItsTimeOut) {
  Add("skip");
  Add("ok");
  Add("hang", 1, 0.3);
  const double began = MonotonicSeconds();
  Run(Description(true));
  EXPECT_EQ(Kinds(), (Strings{"protocol", "ok", "timed_out"}));
  EXPECT_LT(MonotonicSeconds() - began, cases_[0].timeout_s);
}

TEST_F(RunCasesTest, MalformedStatusIsAProtocolErrorAndTheRestGoesOn) {
  for (const char* behaviour : {"garbage", "ok", "wrong_word", "folder_status", "fifo_status", "ok", "garbage"}) {
    Add(behaviour);
  }
  Run(Description(true));
  EXPECT_EQ(Kinds(), (Strings{"protocol", "ok", "protocol", "protocol", "protocol", "ok", "protocol"}));
  EXPECT_NE(Message(0).find("status.json"), std::string::npos) << Message(0);
  EXPECT_NE(Message(2).find("fine"), std::string::npos) << Message(2);
  EXPECT_EQ(Message(3), "not a regular file");
  EXPECT_EQ(Message(4), "not a regular file");
  EXPECT_EQ(NumStarts(), 1u);
}

TEST_F(RunCasesTest, MalformedStatusOfARunningEngineIsNotWaitedForUntilTheTimeOut) {
  Add("garbage");
  Add("hang", 1, 2);
  const double began = MonotonicSeconds();
  double reported = 0;
  Run(Description(true), {}, [&](size_t index) { reported = index == 0 ? MonotonicSeconds() - began : reported; });
  EXPECT_EQ(Kinds(), (Strings{"protocol", "timed_out"}));
  EXPECT_LT(reported, 2);
}

TEST_F(RunCasesTest, StatusThatIsStillBeingWrittenIsWaitedFor) {
  Add("two_parts");
  Add("two_parts");
  Run(Description(true));
  EXPECT_EQ(Kinds(), Strings(2, "ok"));
  EXPECT_EQ(Message(0), "in two parts");
}

TEST_F(RunCasesTest, FilesThatStayOpenAreNamedWithoutLosingTheStart) {
  Add("leaves_open");
  Add("ok");
  Add("hang", 1, 1);
  Run(Description(true));
  EXPECT_EQ(Kinds(), (Strings{"protocol", "ok", "timed_out"}));
  EXPECT_EQ(Message(0),
            "the case is over, but moments and 1 more are still open 0.5 s later (a start of several cases shows it)");
  EXPECT_EQ(NumStarts(), 1u);
}

TEST_F(RunCasesTest, FilesThatAreClosedSoonAfterTheStatusOrWithTheProcessAreNoMatter) {
  Add("closes_late");
  Add("closes_late");
  Add("leaves_open");
  Run(Description(true));
  EXPECT_EQ(Kinds(), Strings(3, "ok"));
}

TEST_F(RunCasesTest, TimeOutDoesNotRunWhileFilesAreWaitedFor) {
  Add("leaves_open", 1, 0.2);
  Add("hang", 1, 0.2);
  limits_.start_allowance_s = 0.2;
  Run(Description(true));
  EXPECT_EQ(Kinds(), (Strings{"protocol", "timed_out"}));
}

TEST_F(RunCasesTest, ExitCodeMustAgreeWithTheStatus) {
  for (const char* behaviour : {"ok_but_exit_1", "unsupported_but_exit_0", "crash_later"}) Add(behaviour);
  Run(Description(false));
  EXPECT_EQ(Kinds(), (Strings{"crashed", "protocol", "crashed"}));
  EXPECT_EQ(Message(0), "status \"ok\", but ended with exit code 1");
  EXPECT_EQ(Message(1), "status \"unsupported\", but ended with exit code 0");
  EXPECT_EQ(Message(2), "status \"ok\", but killed by SIGSEGV; last line of its errors: about to crash");
}

TEST_F(RunCasesTest, CrashOnTheWayOutOfABatchIsNotLost) {
  Add("crash_later");
  Add("ok");
  Run(Description(true));
  EXPECT_EQ(Kinds(), (Strings{"ok", "crashed"}));
}

TEST_F(RunCasesTest, ExitCodeOfABatchIsBlamedOnItsLastCaseAndExtraArgumentsComeFirst) {
  Add("unsupported");
  Add("unsupported");
  Run(Description(true), {}, {}, {"--batch-exit", "3"});
  EXPECT_EQ(Kinds(), (Strings{"unsupported", "protocol"}));
  EXPECT_EQ(Message(1), "status \"unsupported\", but ended with exit code 3");
}

TEST_F(RunCasesTest, EngineThatDoesNotEndAfterItsLastStatusIsTimedOut) {
  Add("hang_after");
  Run(Description(false));
  EXPECT_EQ(KindOf(0), Kind::kTimedOut);
  EXPECT_EQ(Message(0), "the last status, \"ok\", was written, but the engine had not ended 1 s later");
}

TEST_F(RunCasesTest, MessagesAreOneLine) {
  Add("message_with_control");
  Run(Description(false));
  EXPECT_EQ(Message(0), "two lines");
}

TEST_F(RunCasesTest, LogIsCutAndAnEngineThatPrintsTooMuchIsNotBlocked) {
  Add("print");  // 4 MB
  Run(Description(true));
  EXPECT_EQ(KindOf(0), Kind::kOk) << Message(0);
  const std::string log = Content(outcomes_.at(0).log);
  EXPECT_GE(log.size(), 100'000u);
  EXPECT_LT(log.size(), 100'200u);
  EXPECT_NE(log.find("[log cut"), std::string::npos);
}

TEST_F(RunCasesTest, ChildHasOnlyItsThreeDescriptors) {
  const int leaked = dup(0);  // without close-on-exec, as a library of ours might do
  Add("descriptors");
  Run(Description(true));
  close(leaked);
  EXPECT_EQ(Content(folder_ / "out0/descriptors"), "0 1 2 ");
}

TEST_F(RunCasesTest, RanksGetTheFiveVariablesAndOnePort) {
  Add("environment_variables", 3);
  Run(Description(false, true));
  EXPECT_EQ(KindOf(0), Kind::kOk) << Message(0);
  std::string port;
  for (int rank = 0; rank < 3; ++rank) {
    std::istringstream line(Content(folder_ / "out0" / ("environment" + std::to_string(rank))));
    std::string words[5];
    for (std::string& word : words) line >> word;
    EXPECT_EQ(words[0], std::to_string(rank));
    EXPECT_EQ(words[1], std::to_string(rank));
    EXPECT_EQ(words[2], "3");
    EXPECT_EQ(words[3], "127.0.0.1");
    if (rank == 0) port = words[4];
    EXPECT_EQ(words[4], port);
  }
  EXPECT_GT(std::stoi(port), 0);
}

TEST_F(RunCasesTest, EngineThatStartsItsRanksItselfSeesNoRankOfOurs) {
  setenv("RANK", "5", 1);
  setenv("MASTER_PORT", "1", 1);
  Add("environment_variables", 3);
  Run(Description(true));
  unsetenv("RANK");
  unsetenv("MASTER_PORT");
  EXPECT_EQ(Content(folder_ / "out0/environment0"), "(unset) (unset) (unset) (unset) (unset)");
}

TEST_F(RunCasesTest, BatchesOfRanksAreGroupedByWorld) {
  for (const int64_t world : {2, 1, 2, 3, 1}) Add("environment_variables", world);
  Run(Description(true, true));
  EXPECT_EQ(Kinds(), Strings(5, "ok"));
  EXPECT_EQ(order_, (std::vector<size_t>{0, 2, 1, 4, 3}));
  EXPECT_EQ(NumStarts(), 3u);
  EXPECT_TRUE(fs::exists(folder_ / "out2/environment1"));
  EXPECT_FALSE(fs::exists(folder_ / "out1/environment1"));
}

TEST_F(RunCasesTest, RankThatDiesIsNamedAndTheOthersAreKilled) {
  for (const bool batch : {true, false}) {
    cases_.clear();
    outcomes_.clear();
    fs::remove_all(folder_);
    Add("rank_1_crashes", 3);
    Add("ok", 3);
    Add("rank_1_exits_7", 3);
    Run(Description(batch, true));
    EXPECT_EQ(Kinds(), (Strings{"crashed", "ok", "crashed"})) << batch;
    EXPECT_EQ(Message(0), "rank 1 killed by SIGSEGV; last line of its errors: about to crash");
    EXPECT_EQ(Message(2), "rank 1 ended with exit code 7");
    EXPECT_NE(outcomes_.at(0).log.string().find("-rank1.log"), std::string::npos);
    for (const char* file : {"out0/pid0", "out0/pid2", "out2/pid0"}) EXPECT_TRUE(IsDead(Pid(file))) << file;
  }
}

TEST_F(RunCasesTest, RankThatLeavesAsIfAllWereWellIsNamedWhereTheOthersWaitOrFail) {
  Add("ok", 2);
  Add("rank_1_leaves", 2, 0.25);
  Add("ok", 2);
  Add("rank_1_leaves_rank_0_exits_5", 2);
  Run(Description(true, true));
  EXPECT_EQ(Kinds(), (Strings{"ok", "timed_out", "ok", "crashed"}));
  for (const size_t index : {1, 3}) {
    EXPECT_NE(Message(index).find("; rank 1 ended with exit code 0"), std::string::npos) << Message(index);
  }
}

TEST_F(RunCasesTest, RankThatDiesIsBlamedEvenIfRankZeroStatesAnError) {
  for (const bool batch : {true, false}) {
    cases_.clear();
    outcomes_.clear();
    fs::remove_all(folder_);
    Add("rank_1_crashes_rank_0_says_so", 2);
    Add("ok", 2);
    Run(Description(batch, true));
    EXPECT_EQ(Kinds(), (Strings{"crashed", "ok"})) << batch;
    EXPECT_EQ(Message(0),
              "rank 1 killed by SIGSEGV; last line of its errors: about to crash; status \"error\": peer lost");
  }
}

TEST_F(RunCasesTest, RankThatDiesMakesAnOkayOfRankZeroWorthless) {
  Add("rank_1_crashes_after", 2);
  Run(Description(false, true));
  EXPECT_EQ(KindOf(0), Kind::kCrashed);
  EXPECT_EQ(Message(0), "status \"ok\", but rank 1 killed by SIGSEGV; last line of its errors: about to crash");
}

TEST_F(RunCasesTest, RanksThatDeclineTogetherAreUnsupported) {
  Add("unsupported", 3);
  Run(Description(false, true));
  EXPECT_EQ(KindOf(0), Kind::kUnsupported) << Message(0);
}

TEST_F(RunCasesTest, RestartClearsWhatRanksThatRanAheadHaveLeft) {
  Add("rank_1_crashes", 2);
  Add("ok", 2);
  std::ofstream(folder_ / "unrelated") << "stays";
  Run(Description(true, true), {}, [&](size_t index) {
    if (index == 0) std::ofstream(cases_[1].out_dir / "left_over") << "x";
  });
  EXPECT_EQ(Kinds(), (Strings{"crashed", "ok"}));
  EXPECT_FALSE(fs::exists(cases_[1].out_dir / "left_over"));
  EXPECT_TRUE(fs::exists(folder_ / "unrelated"));
}

TEST_F(RunCasesTest, StopHalfWayInterruptsTheRestPromptly) {
  for (const bool batch : {true, false}) {
    cases_.clear();
    outcomes_.clear();
    fs::remove_all(folder_);
    Add("ok");
    Add("hang_deaf");
    Add("ok");
    std::stop_source source;
    std::thread stopper;
    double asked = 0;
    Run(Description(batch), source.get_token(), [&](size_t index) {
      if (index != 0) return;
      stopper = std::thread([&] {
        while (!fs::exists(folder_ / "out1/pid0")) usleep(1000);
        asked = MonotonicSeconds();
        source.request_stop();
      });
    });
    stopper.join();
    EXPECT_LT(MonotonicSeconds() - asked, 2);
    EXPECT_EQ(Kinds(), (Strings{"ok", "interrupted", "interrupted"})) << batch;
    EXPECT_TRUE(IsDead(Pid("out1/pid0")));
    EXPECT_FALSE(fs::exists(folder_ / "out2/pid0"));
  }
}

TEST_F(RunCasesTest, StopBeforeTheFirstStartStartsNothing) {
  Add("ok");
  std::stop_source source;
  source.request_stop();
  Run(Description(true), source.get_token());
  EXPECT_EQ(Kinds(), Strings{"interrupted"});
  EXPECT_EQ(NumStarts(), 0u);
}

TEST_F(RunCasesTest, ExceptionOfTheCallerLeavesNoProcess) {
  Add("ok");
  Add("hang");
  EXPECT_THROW(Run(Description(true), {}, [](size_t) { throw std::runtime_error("caller"); }), std::runtime_error);
  EXPECT_EQ(outcomes_.size(), 1u);
}

TEST_F(RunCasesTest, OutDirThatIsNotEmptyOrNotUniqueIsRefusedBeforeAnyStart) {
  Add("ok");
  Add("ok");
  fs::create_directories(cases_[1].out_dir);
  std::ofstream(cases_[1].out_dir / "status.json") << "{\"status\": \"ok\", \"message\": \"\"}";
  EXPECT_THROW(Run(Description(true)), contract::Error);
  fs::remove(cases_[1].out_dir / "status.json");
  cases_[1].out_dir = cases_[0].out_dir / "." / "";
  EXPECT_THROW(Run(Description(true)), contract::Error);
  EXPECT_TRUE(outcomes_.empty());
}

TEST_F(RunCasesTest, ProgramThatCannotBeStartedIsAnErrorOfTheCall) {
  Add("ok");
  for (const fs::path& program : {folder_ / "absent", folder_, cases_[0].case_dir / "behaviour"}) {
    try {
      RunCases({program, {}}, Description(true), cases_, folder_ / "scratch", {}, [](size_t, const CaseOutcome&) {});
      ADD_FAILURE() << program;
    } catch (const contract::Error& error) {
      // Whoever runs cases has asked it to describe itself before.
      EXPECT_EQ(error.code(), contract::ErrorCode::kEnvironment);
      EXPECT_NE(std::string(error.what()).find(program.string()), std::string::npos) << error.what();
    }
  }
}

TEST_F(RunCasesTest, CallsInSeveralThreadsDoNotDisturbEachOther) {
  constexpr int kThreads = 4;
  std::vector<std::vector<CaseRun>> lists(kThreads);
  for (int thread = 0; thread < kThreads; ++thread) {
    for (const char* behaviour : {"ok", "crash", "ok", "exit_0", "ok"}) Add(behaviour);
    lists[thread].assign(cases_.end() - 5, cases_.end());
  }
  std::vector<Strings> kinds(kThreads);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      RunCases(
          {kFakeEngine, {}}, Description(thread % 2 == 0), lists[thread], folder_ / "scratch", {},
          [&](size_t, const CaseOutcome& outcome) { kinds[thread].emplace_back(Name(outcome.kind)); }, limits_);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Strings& each : kinds) EXPECT_EQ(each, (Strings{"ok", "crashed", "ok", "protocol", "ok"}));
}

TEST_F(RunCasesTest, EngineDiesWithTheHarness) {
  Add("hang");
  const pid_t harness = fork();
  if (harness == 0) {
    RunCases(
        {kFakeEngine, {}}, Description(true), cases_, folder_ / "scratch", {}, [](size_t, const CaseOutcome&) {},
        limits_);
    _exit(0);
  }
  const fs::path pid_file = folder_ / "out0/pid0";
  while (!fs::exists(pid_file)) usleep(1000);
  const pid_t engine = Pid("out0/pid0");
  EXPECT_FALSE(IsDead(engine));
  kill(harness, SIGKILL);
  waitpid(harness, nullptr, 0);
  EXPECT_TRUE(DiesWithin(engine, 5));
}

}  // namespace
}  // namespace plumbline::conformance
