// SPDX-License-Identifier: Apache-2.0
// The local disk, by POSIX calls.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "conformance/contract/error.h"
#include "conformance/contract/file_io.h"
#include "optimized/checkpoint/file_system.h"

namespace plumbline::optimized {
namespace {

[[noreturn]] void Fail(const std::filesystem::path& path, const std::string& what, int error) {
  contract::Fail(contract::ErrorCode::kEnvironment,
                 path.string() + ": cannot be " + what + ": " + std::strerror(error));
}

class Descriptor {
 public:
  Descriptor(const std::filesystem::path& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
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

class LocalFileSystem final : public FileSystem {
 public:
  void CreateDirectories(const std::filesystem::path& path) override {
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (error) Fail(path, "created", error.value());
  }

  void Write(const std::filesystem::path& path, std::string_view content) override {
    Descriptor file(path, O_WRONLY | O_CREAT | O_TRUNC);
    if (file.get() < 0) Fail(path, "written", errno);
    for (size_t done = 0; done < content.size();) {
      const ssize_t put = ::write(file.get(), content.data() + done, content.size() - done);
      if (put < 0 && errno != EINTR) Fail(path, "written", errno);
      if (put > 0) done += static_cast<size_t>(put);
    }
    if (!file.Close()) Fail(path, "written", errno);
  }

  void SyncFile(const std::filesystem::path& path) override { Sync(path, O_RDONLY); }
  void SyncDirectory(const std::filesystem::path& path) override { Sync(path, O_RDONLY | O_DIRECTORY); }

  void Rename(const std::filesystem::path& from, const std::filesystem::path& to) override {
    if (std::rename(from.c_str(), to.c_str()) != 0) Fail(to, "renamed from " + from.filename().string(), errno);
  }

  bool Exists(const std::filesystem::path& path) override {
    std::error_code error;
    const bool exists = std::filesystem::exists(path, error);
    if (error) Fail(path, "examined", error.value());
    return exists;
  }

  std::string Read(const std::filesystem::path& path) override { return contract::ReadFile(path); }

 private:
  static void Sync(const std::filesystem::path& path, int flags) {
    const Descriptor file(path, flags);
    if (file.get() < 0 || ::fsync(file.get()) != 0) Fail(path, "synced", errno);
  }
};

}  // namespace

std::unique_ptr<FileSystem> MakeLocalFileSystem() { return std::make_unique<LocalFileSystem>(); }

}  // namespace plumbline::optimized
