// SPDX-License-Identifier: Apache-2.0
// fork, exec, pidfd, reap. See the header for why fork.
#include "conformance/engines/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "conformance/contract/error.h"

namespace plumbline::conformance {
namespace {

using contract::ErrorCode;

// All that the child needs after fork, prepared before it: the child must not allocate.
struct Prepared {
  char* const* argv;
  char* const* environment;
  int stdin_fd;
  int stdout_fd;
  int stderr_fd;
  int report_fd;
  pid_t parent;
};

void RestoreSignals() {
  struct sigaction by_default = {};
  by_default.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) sigaction(number, &by_default, nullptr);  // fails for KILL and STOP
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

bool PlaceStandardDescriptors(const Prepared& p) {
  // First above 2, since a source may itself be 0, 1 or 2 where our own process was started without them.
  const int in = fcntl(p.stdin_fd, F_DUPFD, 3);
  const int out = fcntl(p.stdout_fd, F_DUPFD, 3);
  const int err = fcntl(p.stderr_fd, F_DUPFD, 3);
  if (in < 0 || out < 0 || err < 0) return false;
  return dup2(in, 0) == 0 && dup2(out, 1) == 1 && dup2(err, 2) == 2;
}

// Runs in the child. Reports errno through report_fd, which exec closes.
[[noreturn]] void ExecuteInChild(const Prepared& p) {
  setpgid(0, 0);
  // The parent may have died before prctl took effect; then nobody would ever kill us.
  const bool tied = prctl(PR_SET_PDEATHSIG, SIGKILL) == 0;
  if (getppid() != p.parent) _exit(127);
  const int report = fcntl(p.report_fd, F_DUPFD_CLOEXEC, 3);
  // Descriptors that other code of our process opened without close-on-exec are covered too.
  if (tied && report >= 0 && PlaceStandardDescriptors(p) && close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) == 0) {
    RestoreSignals();
    execve(p.argv[0], p.argv, p.environment);
  }
  const int reason = errno;
  [[maybe_unused]] const ssize_t written = write(report >= 0 ? report : p.report_fd, &reason, sizeof reason);
  _exit(127);
}

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

bool IsFaultOfMachine(int reason) {
  return reason == ENOMEM || reason == EAGAIN || reason == EMFILE || reason == ENFILE || reason == EIO ||
         reason == ENOSYS;
}

[[noreturn]] void FailStart(const std::string& where, int reason) {
  contract::Fail(IsFaultOfMachine(reason) ? ErrorCode::kEnvironment : ErrorCode::kInvalidArgument,
                 where + ": cannot be started: " + std::strerror(reason));
}

// Signals stay blocked across fork, or a handler of ours could run in the child.
pid_t ForkWithSignalsBlocked(const Prepared& prepared) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = fork();
  if (pid == 0) ExecuteInChild(prepared);
  const int reason = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = reason;
  return pid;
}

// Close-on-exec by definition. (The wrapper in glibc 2.36 is declared without extern "C".)
int OpenPidfd(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

// 0 once the child has executed its program, else the errno that stopped it.
int ReadStartReport(int fd) {
  int reason = 0;
  ssize_t got;
  do {
    got = read(fd, &reason, sizeof reason);
  } while (got < 0 && errno == EINTR);
  return got == sizeof reason ? reason : 0;
}

}  // namespace

std::string ToString(const ChildEnd& end) {
  if (!end.signaled) return "exit code " + std::to_string(end.code);
  const char* name = sigabbrev_np(end.code);
  return "killed by " + (name != nullptr ? "SIG" + std::string(name) : "signal " + std::to_string(end.code));
}

ChildProcess::ChildProcess(const std::vector<std::string>& argv, const std::vector<std::string>& environment,
                           int stdout_fd, int stderr_fd, const std::string& where) {
  const std::vector<char*> argv_pointers = Pointers(argv);
  const std::vector<char*> environment_pointers = Pointers(environment);
  const UniqueFd null_input(open("/dev/null", O_RDONLY | O_CLOEXEC));
  int report[2];
  if (!null_input || pipe2(report, O_CLOEXEC) != 0) FailStart(where, errno);
  const UniqueFd report_read(report[0]);
  UniqueFd report_write(report[1]);
  pid_ = ForkWithSignalsBlocked({.argv = argv_pointers.data(),
                                 .environment = environment_pointers.data(),
                                 .stdin_fd = null_input.get(),
                                 .stdout_fd = stdout_fd,
                                 .stderr_fd = stderr_fd,
                                 .report_fd = report_write.get(),
                                 .parent = getpid()});
  if (pid_ < 0) FailStart(where, errno);
  report_write.Reset();
  int reason = ReadStartReport(report_read.get());
  if (reason == 0) {
    pidfd_ = UniqueFd(OpenPidfd(pid_));
    if (pidfd_) return;
    reason = errno;
    kill(-pid_, SIGKILL);
  }
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  FailStart(where, reason);
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), pidfd_(std::move(other.pidfd_)), end_(std::move(other.end_)) {}

ChildProcess::~ChildProcess() {
  if (pid_ < 0 || ended()) return;
  kill(-pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

bool ChildProcess::TryReap() {
  if (ended()) return true;
  siginfo_t info = {};
  if (waitid(P_PID, pid_, &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
    if (errno == EINTR) return false;
    contract::Fail(ErrorCode::kEnvironment, std::string("waitid: ") + std::strerror(errno));
  }
  if (info.si_pid != pid_) return false;
  // While the child is a zombie its number cannot be given to a stranger, so this reaches only what it left behind.
  kill(-pid_, SIGKILL);
  while (waitid(P_PID, pid_, &info, WEXITED) != 0 && errno == EINTR) {
  }
  end_ = ChildEnd{.signaled = info.si_code != CLD_EXITED, .code = info.si_status};
  return true;
}

void ChildProcess::SignalGroup(int signal_number) const {
  if (!ended()) kill(-pid_, signal_number);  // ESRCH cannot be: at least the unreaped leader is there
}

}  // namespace plumbline::conformance
