// SPDX-License-Identifier: Apache-2.0
// The folder of one run's results. Nothing that is there already is ever overwritten.
#pragma once

#include <filesystem>
#include <string>

#include "reports/record/record.h"

namespace plumbline::cli {

// `wanted`, or if that is empty a new folder plumbline-out/COMMAND-TIME-PID below the current one.
class ResultFolder {
 public:
  // InvalidArgument if it holds anything, Environment if it cannot be made or written.
  ResultFolder(const std::string& wanted, const std::string& command);
  ResultFolder(const ResultFolder&) = delete;
  ResultFolder& operator=(const ResultFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }  // absolute
  std::string record_shown() const;                            // record.json, from the current folder

  // Removes it if it was made for this run and nothing was written: refused input leaves nothing behind.
  void Discard() const;

 private:
  std::filesystem::path path_;
  bool made_ = false;
  bool is_named_ = false;
};

// FOLDER/work, made at construction and removed at the end (with `keep` only if it is empty), also when an error ends
// the run: a full disk gets its space back. Making it claims the folder: InvalidArgument if another run has it.
class WorkFolder {
 public:
  WorkFolder(const std::filesystem::path& folder, bool keep);
  ~WorkFolder();
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  bool keep_;
};

// record.json and junit.xml, and then `text` and, if `name_record`, the record's path on standard output. The text is
// printed also where the folder cannot be written, and the folder is written before standard output is: neither loses
// the other. Environment, and std::system_error where only standard output was lost.
void PrintAndWrite(const ResultFolder& folder, const reports::Record& record, const std::string& text,
                   bool name_record);

}  // namespace plumbline::cli
