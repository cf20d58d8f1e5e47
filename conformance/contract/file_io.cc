// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/file_io.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "conformance/contract/error.h"

namespace plumbline::contract {
namespace {

class FileDescriptor {
 public:
  FileDescriptor(const std::filesystem::path& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {}
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }
  // False where the kernel reports a delayed write error.
  bool Close() {
    const int fd = fd_;
    fd_ = -1;
    return ::close(fd) == 0;
  }

 private:
  int fd_;
};

[[noreturn]] void FailRead(const std::string& name, const std::string& reason) {
  Fail(ErrorCode::kInvalidArgument, name + ": cannot be read: " + reason);
}

std::string ReadNamed(const std::filesystem::path& path, const std::string& name, uint64_t max_bytes) {
  // O_NONBLOCK: opening a pipe that nobody writes to must not hang.
  FileDescriptor file(path, O_RDONLY | O_NONBLOCK);
  if (file.get() < 0) FailRead(name, std::strerror(errno));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) FailRead(name, std::strerror(errno));
  if (S_ISDIR(status.st_mode)) FailRead(name, std::strerror(EISDIR));
  if (!S_ISREG(status.st_mode)) FailRead(name, "not a regular file");
  std::string content;
  constexpr size_t kChunkBytes = size_t{1} << 16;
  while (true) {
    const size_t size = content.size();
    content.resize(size + kChunkBytes);
    ssize_t got;
    do {
      got = ::read(file.get(), content.data() + size, kChunkBytes);
    } while (got < 0 && errno == EINTR);
    if (got < 0) FailRead(name, std::strerror(errno));
    content.resize(size + static_cast<size_t>(got));
    if (got == 0) return content;
    if (content.size() > max_bytes) FailRead(name, "longer than " + std::to_string(max_bytes) + " bytes");
  }
}

}  // namespace

std::string ReadFile(const std::filesystem::path& path, uint64_t max_bytes) {
  return ReadNamed(path, path.string(), max_bytes);
}

std::string ReadFileOf(const std::filesystem::path& folder, const std::string& name, uint64_t max_bytes) {
  return ReadNamed(folder / name, name, max_bytes);
}

void WriteFile(const std::filesystem::path& path, std::string_view content) {
  const std::filesystem::path temporary = path.string() + ".tmp." + std::to_string(::getpid());
  const auto fail = [&] {
    const std::string reason = std::strerror(errno);
    ::unlink(temporary.c_str());
    Fail(ErrorCode::kEnvironment, path.string() + ": cannot be written: " + reason);
  };
  FileDescriptor file(temporary, O_WRONLY | O_CREAT | O_TRUNC);
  if (file.get() < 0) fail();
  for (size_t done = 0; done < content.size();) {
    const ssize_t put = ::write(file.get(), content.data() + done, content.size() - done);
    if (put < 0 && errno != EINTR) fail();
    if (put > 0) done += static_cast<size_t>(put);
  }
  if (!file.Close()) fail();
  if (::rename(temporary.c_str(), path.c_str()) != 0) fail();
}

}  // namespace plumbline::contract
