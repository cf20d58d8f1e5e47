// SPDX-License-Identifier: Apache-2.0
// The program `optimized_processes`, once for each rank, as a launcher starts it, and what becomes of each.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "optimized/comm/testing/free_port.h"

extern char** environ;

namespace plumbline::optimized::testing {

inline constexpr char kProgram[] = "optimized/engine/optimized_processes";

inline std::string Content(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

using Variables = std::map<std::string, std::string>;

// The processes of ranks 0 ... size - 1; those that are left when it is destroyed are killed.
class ProcessWorld {
 public:
  // Standard error of rank R goes to FOLDER/stderrR.
  ProcessWorld(int64_t size, const std::vector<std::string>& args, const std::filesystem::path& folder,
               const Variables& variables = {})
      : folder_(folder) {
    const std::string port = std::to_string(FreePort());
    for (int64_t rank = 0; rank < size; ++rank) {
      Variables own = {{"RANK", std::to_string(rank)},
                       {"LOCAL_RANK", std::to_string(rank)},
                       {"WORLD_SIZE", std::to_string(size)},
                       {"MASTER_ADDR", "127.0.0.1"},
                       {"MASTER_PORT", port}};
      for (const auto& [name, value] : variables) own[name] = value;
      pids_.push_back(Start(args, own, ErrorFile(rank)));
    }
  }

  ~ProcessWorld() {
    for (const pid_t pid : pids_) {
      if (pid < 0) continue;
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }
  ProcessWorld(const ProcessWorld&) = delete;
  ProcessWorld& operator=(const ProcessWorld&) = delete;

  void Signal(int64_t rank, int number) { ASSERT_EQ(kill(pids_[rank], number), 0); }

  // Its exit code, or minus the signal that ended it.
  int Wait(int64_t rank) {
    int status = 0;
    EXPECT_EQ(waitpid(pids_[rank], &status, 0), pids_[rank]);
    pids_[rank] = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  std::string Errors(int64_t rank) const { return Content(ErrorFile(rank)); }

 private:
  std::filesystem::path ErrorFile(int64_t rank) const { return folder_ / ("stderr" + std::to_string(rank)); }

  static pid_t Start(const std::vector<std::string>& args, const Variables& variables,
                     const std::filesystem::path& errors) {
    std::vector<std::string> words = {kProgram}, entries;
    words.insert(words.end(), args.begin(), args.end());
    for (const auto& [name, value] : variables) entries.push_back(name + "=" + value);
    const pid_t pid = fork();
    if (pid != 0) return pid;
    if (!freopen(errors.c_str(), "w", stderr) || !freopen("/dev/null", "w", stdout)) _exit(127);
    execve(kProgram, Pointers(words).data(), Pointers(entries).data());
    _exit(127);
  }

  static std::vector<char*> Pointers(std::vector<std::string>& words) {
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    return pointers;
  }

  std::filesystem::path folder_;
  std::vector<pid_t> pids_;
};

// Until the file has a line that holds `word`; false after a minute.
inline bool AwaitLine(const std::filesystem::path& file, const std::string& word) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (Content(file).find(word) == std::string::npos) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace plumbline::optimized::testing
