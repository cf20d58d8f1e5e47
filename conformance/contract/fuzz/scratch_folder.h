// SPDX-License-Identifier: Apache-2.0
// A folder for one execution of a target, for readers and writers of whole folders. It lies where temporary files lie
// ($TMPDIR): a fuzzer that shall be fast says a file system in memory there.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace plumbline::contract::fuzz {

class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

  // Makes the folders on the way to it too.
  void Put(const std::string& name, std::string_view content) const;

 private:
  std::filesystem::path path_;
};

}  // namespace plumbline::contract::fuzz
