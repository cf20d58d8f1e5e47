// SPDX-License-Identifier: Apache-2.0
// An engine that trains nothing and misbehaves on request: the first word of CASE_DIR/behaviour says how. It speaks the
// protocol by hand, without the contract's EngineMain, so that it can also break it.
//
// Arguments before the command: --batch-exit N (exit code of a finished batch).
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "(unset)" : value;
}

int Rank() { return std::getenv("RANK") == nullptr ? 0 : std::atoi(std::getenv("RANK")); }

void Write(const fs::path& path, const std::string& text) {
  std::ofstream(path.string() + ".tmp") << text;
  fs::rename(path.string() + ".tmp", path);
}

int Status(const fs::path& out, const std::string& status, const std::string& message, int exit_code) {
  if (Rank() == 0) Write(out / "status.json", "{\"status\": \"" + status + "\", \"message\": \"" + message + "\"}\n");
  return exit_code;
}

[[noreturn]] void Crash() {
  std::cerr << "about to crash\n" << std::flush;
  signal(SIGSEGV, SIG_DFL);
  raise(SIGSEGV);
  std::abort();
}

[[noreturn]] void Hang() {
  std::cerr << "waiting for ever" << std::endl;
  while (true) pause();
}

// It writes nothing, so that a closed pipe does not end it: only a signal can.
void LeaveGrandchild(const fs::path& out) {
  const pid_t pid = fork();
  while (pid == 0) pause();
  Write(out / "grandchild", std::to_string(pid));
}

// In a session of its own and without a parent, as daemons are.
void LeaveDaemon(const fs::path& out) {
  if (fork() == 0) {
    setsid();
    if (fork() != 0) _exit(0);
    Write(out / "daemon", std::to_string(getpid()));
    while (true) pause();
  }
  while (!fs::exists(out / "daemon")) usleep(1000);
}

void WriteDescriptors(const fs::path& out) {
  std::string list;
  for (int fd = 0; fd < 1024; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) list += std::to_string(fd) + " ";
  }
  Write(out / "descriptors", list);
}

void LeaveOpen(const fs::path& out) {
  for (const char* name : {"weights", "moments"}) (void)open((out / name).c_str(), O_CREAT | O_WRONLY, 0644);
}

void CloseLate(const fs::path& out) {
  const int fd = open((out / "weights").c_str(), O_CREAT | O_WRONLY, 0644);
  Status(out, "ok", "", 0);
  usleep(100'000);
  close(fd);
}

void WriteEnvironment(const fs::path& out) {
  Write(out / ("environment" + std::to_string(Rank())),
        Environment("RANK") + " " + Environment("LOCAL_RANK") + " " + Environment("WORLD_SIZE") + " " +
            Environment("MASTER_ADDR") + " " + Environment("MASTER_PORT"));
}

void WriteUnfinishedStatus(const fs::path& out) {
  std::ofstream file(out / "status.json");
  file << "{\"status\": \"ok\", " << std::flush;
  usleep(50'000);
  file << "\"message\": \"in two parts\"}" << std::flush;
}

// Returns the exit code of `run --case`.
int RunCase(const fs::path& case_dir, const fs::path& out, bool& crash_at_the_end) {
  std::string what;
  std::ifstream(case_dir / "behaviour") >> what;
  Write(out / ("pid" + std::to_string(Rank())), std::to_string(getpid()));
  if (what == "ok") return Status(out, "ok", "", 0);
  if (what == "unsupported") return Status(out, "unsupported", "no such feature", 3);
  if (what == "environment") return Status(out, "environment", "no device", 4);
  if (what == "error") return Status(out, "error", "it failed", 1);
  if (what == "ok_but_exit_1") return Status(out, "ok", "", 1);
  if (what == "unsupported_but_exit_0") return Status(out, "unsupported", "", 0);
  if (what == "crash") Crash();
  if (what == "hang") Hang();
  if (what == "hang_deaf") signal(SIGTERM, SIG_IGN), Hang();
  if (what == "exit_0") std::exit(0);
  if (what == "exit_3") std::exit(3);
  if (what == "exit_7") std::cerr << "seven\n\n", std::exit(7);
  if (what == "skip") return 0;
  if (what == "garbage") Write(out / "status.json", "ok\n");
  if (what == "wrong_word") Status(out, "fine", "", 0);
  if (what == "folder_status") fs::create_directory(out / "status.json");
  if (what == "fifo_status") (void)!system(("mkfifo " + (out / "status.json").string()).c_str());
  if (what == "two_parts") WriteUnfinishedStatus(out);
  if (what == "crash_later") crash_at_the_end = true, Status(out, "ok", "", 0);
  if (what == "hang_after") Status(out, "ok", "", 0), Hang();
  if (what == "grandchild") LeaveGrandchild(out), Status(out, "ok", "", 0);
  if (what == "grandchild_hang") LeaveGrandchild(out), Hang();
  if (what == "daemon") LeaveDaemon(out), Status(out, "ok", "", 0);
  if (what == "daemon_hang") LeaveDaemon(out), Hang();
  if (what == "descriptors") WriteDescriptors(out), Status(out, "ok", "", 0);
  if (what == "leaves_open") LeaveOpen(out), Status(out, "ok", "", 0);
  if (what == "closes_late") CloseLate(out);
  if (what == "environment_variables") WriteEnvironment(out), usleep(20'000), Status(out, "ok", "", 0);
  if (what == "message_with_control") Status(out, "error", "two\\nlines\\u0001", 1);
  if (what == "print") {
    for (int i = 0; i < 40'000; ++i) std::cout << std::string(99, '.') << '\n';
    Status(out, "ok", "", 0);
  }
  if (what == "rank_1_crashes") Rank() == 1 ? Crash() : Hang();
  if (what == "rank_1_leaves") Rank() == 1 ? std::exit(0) : Hang();
  if (what == "rank_1_leaves_rank_0_exits_5") {
    if (Rank() == 1) std::exit(0);
    usleep(200'000);
    std::exit(5);
  }
  if (what == "rank_1_exits_7") Rank() == 1 ? std::exit(7) : Hang();
  if (what == "rank_1_crashes_rank_0_says_so") {
    if (Rank() == 1) Crash();
    usleep(200'000);
    return Status(out, "error", "peer lost", 1);
  }
  if (what == "rank_1_crashes_after") {
    if (Rank() == 1) Crash();
    return Status(out, "ok", "", 0);
  }
  return 0;
}

// Every line is {"case": "A", "out": "B"}; the paths of the tests need no escapes.
std::vector<std::pair<fs::path, fs::path>> ReadList(const fs::path& path) {
  std::vector<std::pair<fs::path, fs::path>> list;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::vector<std::string> parts;
    std::istringstream stream(line);
    for (std::string part; std::getline(stream, part, '"');) parts.push_back(part);
    list.emplace_back(parts.at(3), parts.at(7));
  }
  return list;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> args(argv + 1, argv + argc);
  int batch_exit = 0;
  if (args.size() > 2 && args[0] == "--batch-exit") {
    batch_exit = std::stoi(args[1]);
    args.erase(args.begin(), args.begin() + 2);
  }
  bool crash_at_the_end = false;
  if (args.size() == 5 && args[0] == "run" && args[1] == "--case" && args[3] == "--out") {
    const int code = RunCase(args[2], args[4], crash_at_the_end);
    if (crash_at_the_end) Crash();
    return code;
  }
  if (args.size() != 3 || args[0] != "run" || args[1] != "--batch") return 2;
  for (const auto& [case_dir, out] : ReadList(args[2])) RunCase(case_dir, out, crash_at_the_end);
  if (crash_at_the_end) Crash();
  return batch_exit;
}
