// SPDX-License-Identifier: Apache-2.0
// The file operations of checkpoints, each a step that a crash may separate from the next. One implementation for the
// local disk; decorators that inject faults implement the same interface.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace plumbline::optimized {

// Every failure is an Environment error that names the path and the reason, except where another code is stated.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // With parents; existing ones are fine. Durable only after SyncDirectory of the parent.
  virtual void CreateDirectories(const std::filesystem::path& path) = 0;

  // Creates or replaces the file. What a crash leaves of it is undefined before SyncFile.
  virtual void Write(const std::filesystem::path& path, std::string_view content) = 0;

  // Returns when the file's content is durable. Its name is durable after SyncDirectory of its folder.
  virtual void SyncFile(const std::filesystem::path& path) = 0;
  virtual void SyncDirectory(const std::filesystem::path& path) = 0;

  // Atomic: a reader sees `from` at `to` completely or not at all.
  virtual void Rename(const std::filesystem::path& from, const std::filesystem::path& to) = 0;

  virtual bool Exists(const std::filesystem::path& path) = 0;

  // InvalidArgument if it cannot be read.
  virtual std::string Read(const std::filesystem::path& path) = 0;
};

std::unique_ptr<FileSystem> MakeLocalFileSystem();

}  // namespace plumbline::optimized
