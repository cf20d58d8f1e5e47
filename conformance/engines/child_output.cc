// SPDX-License-Identifier: Apache-2.0
// Pipes, draining, the bounded log.
#include "conformance/engines/child_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "conformance/contract/error.h"
#include "conformance/engines/one_line.h"

namespace plumbline::conformance {
namespace {

constexpr size_t kTailBytes = 8192;
constexpr size_t kDrainBytes = size_t{1} << 20;

[[noreturn]] void FailErrno(const std::string& what) {
  const int reason = errno;
  contract::Fail(contract::ErrorCode::kEnvironment, what + ": " + std::strerror(reason));
}

}  // namespace

Pipe MakePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) FailErrno("cannot make a pipe");
  Pipe pipe{.read = UniqueFd(ends[0]), .write = UniqueFd(ends[1])};
  if (fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) FailErrno("cannot set up a pipe");  // this end only
  return pipe;
}

bool DrainPipe(int fd, const std::function<void(std::string_view)>& consume) {
  char buffer[65536];
  for (size_t total = 0; total < kDrainBytes;) {
    const ssize_t got = read(fd, buffer, sizeof buffer);
    if (got > 0) {
      consume(std::string_view(buffer, static_cast<size_t>(got)));
      total += static_cast<size_t>(got);
    } else if (got == 0) {
      return false;
    } else if (errno == EAGAIN) {
      return true;
    } else if (errno != EINTR) {
      FailErrno("cannot read a pipe");
    }
  }
  return true;
}

void Tail::Add(std::string_view text) {
  if (text.size() > kTailBytes) text.remove_prefix(text.size() - kTailBytes);
  const size_t keep = std::min(text_.size(), kTailBytes - text.size());
  text_.erase(0, text_.size() - keep);
  text_ += text;
}

OutputLog::OutputLog(const std::filesystem::path& path, int64_t max_bytes)
    : path_(path),
      file_(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666)),
      room_bytes_(max_bytes),
      max_bytes_(max_bytes) {
  if (!file_) FailErrno("cannot create log " + path.string());
  out_ = MakePipe();
  err_ = MakePipe();
}

void OutputLog::ChildStarted() {
  out_.write.Reset();
  err_.write.Reset();
}

void OutputLog::Drain() {
  DrainOne(out_.read, nullptr);
  DrainOne(err_.read, &error_tail_);
}

void OutputLog::DrainOne(UniqueFd& fd, Tail* tail) {
  if (!fd) return;
  const bool open = DrainPipe(fd.get(), [&](std::string_view text) {
    Append(text);
    if (tail != nullptr) tail->Add(text);
  });
  if (!open) fd.Reset();
}

void OutputLog::Close() {
  Drain();
  out_.read.Reset();
  err_.read.Reset();
  file_.Reset();
}

void OutputLog::Append(std::string_view text) {
  if (room_bytes_ <= 0) return;
  const size_t size = std::min(text.size(), static_cast<size_t>(room_bytes_));
  WriteAll(text.substr(0, size));
  room_bytes_ -= static_cast<int64_t>(size);
  if (room_bytes_ == 0)
    WriteAll("\n[log cut: the engine printed more than " + std::to_string(max_bytes_) + " bytes]\n");
}

void OutputLog::WriteAll(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file_.get(), text.data(), text.size());
    if (written < 0 && errno != EINTR) FailErrno("cannot write log " + path_.string());
    if (written > 0) text.remove_prefix(static_cast<size_t>(written));
  }
}

std::string OutputLog::LastErrorLine() const { return LastLine(error_tail_.text()); }

}  // namespace plumbline::conformance
