// SPDX-License-Identifier: Apache-2.0
#include "cli/result_folder.h"

#include <unistd.h>

#include <algorithm>
#include <system_error>

#include "cli/standard_output.h"
#include "conformance/contract/error.h"
#include "conformance/contract/file_io.h"
#include "conformance/runner/environment.h"
#include "reports/junit/junit.h"

namespace plumbline::cli {
namespace {

using contract::ErrorCode;

std::filesystem::path FreshName(const std::string& command) {
  std::string time = conformance::UtcNow();
  std::erase(time, ':');
  std::erase(time, '-');
  return std::filesystem::path("plumbline-out") / (command + "-" + time + "-" + std::to_string(getpid()));
}

}  // namespace

ResultFolder::ResultFolder(const std::string& wanted, const std::string& command) : is_named_(!wanted.empty()) {
  std::error_code error;
  path_ = std::filesystem::absolute(wanted.empty() ? FreshName(command) : std::filesystem::path(wanted), error);
  if (std::filesystem::exists(path_, error) && !std::filesystem::is_directory(path_, error)) {
    contract::Fail(ErrorCode::kInvalidArgument,
                   "--out " + path_.string() + " is a file; allowed: a new or empty folder");
  }
  made_ = std::filesystem::create_directories(path_, error);
  if (error)
    contract::Fail(ErrorCode::kEnvironment, "--out " + path_.string() + ": cannot be made: " + error.message());
  const bool empty = std::filesystem::is_empty(path_, error);
  if (error)
    contract::Fail(ErrorCode::kEnvironment, "--out " + path_.string() + ": cannot be read: " + error.message());
  if (!empty) {
    contract::Fail(ErrorCode::kInvalidArgument,
                   "--out " + path_.string() + " holds files; allowed: a new or empty folder");
  }
  if (access(path_.c_str(), W_OK | X_OK) != 0) {
    contract::Fail(ErrorCode::kEnvironment, "--out " + path_.string() + ": cannot be written");
  }
}

std::string ResultFolder::record_shown() const {
  std::error_code ignored;
  return std::filesystem::relative(path_ / "record.json", ignored).string();
}

// remove() leaves a folder that holds anything.
void ResultFolder::Discard() const {
  std::error_code ignored;
  if (!made_) return;
  std::filesystem::remove(path_, ignored);
  if (!is_named_) std::filesystem::remove(path_.parent_path(), ignored);
}

WorkFolder::WorkFolder(const std::filesystem::path& folder, bool keep) : path_(folder / "work"), keep_(keep) {
  std::error_code error;
  const bool fresh = std::filesystem::create_directory(path_, error);
  if (error) contract::Fail(ErrorCode::kEnvironment, path_.string() + ": cannot be made: " + error.message());
  if (!fresh) {
    contract::Fail(ErrorCode::kInvalidArgument,
                   "--out " + folder.string() + " is in use by another run; allowed: a new or empty folder");
  }
}

WorkFolder::~WorkFolder() {
  std::error_code ignored;
  if (keep_) {
    std::filesystem::remove(path_, ignored);  // if it is empty
  } else {
    std::filesystem::remove_all(path_, ignored);
  }
}

void PrintAndWrite(const ResultFolder& folder, const reports::Record& record, const std::string& text,
                   bool name_record) {
  std::string problem;
  try {
    contract::WriteFile(folder.path() / "record.json", reports::ToJson(record));
    contract::WriteFile(folder.path() / "junit.xml", reports::ToJunitXml(record));
  } catch (const contract::Error& error) {
    problem = error.what();
  }
  // At once, not when the program ends: removing the work folder may take a while.
  const int lost = WriteOut(text + (name_record && problem.empty() ? "Record: " + folder.record_shown() + "\n" : ""));
  if (!problem.empty()) contract::Fail(ErrorCode::kEnvironment, problem);
  if (lost != 0) throw std::system_error(lost, std::generic_category(), "standard output");
}

}  // namespace plumbline::cli
