// SPDX-License-Identifier: Apache-2.0
#include "cli/result_folder.h"

#include <unistd.h>

#include <algorithm>

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

std::filesystem::path MakeResultFolder(const std::string& wanted, const std::string& command) {
  std::error_code error;
  const std::filesystem::path folder =
      std::filesystem::absolute(wanted.empty() ? FreshName(command) : std::filesystem::path(wanted), error);
  std::filesystem::create_directories(folder, error);
  if (error)
    contract::Fail(ErrorCode::kEnvironment, "--out " + folder.string() + ": cannot be made: " + error.message());
  const bool empty = std::filesystem::is_empty(folder, error);
  if (error)
    contract::Fail(ErrorCode::kEnvironment, "--out " + folder.string() + ": cannot be read: " + error.message());
  if (!empty) {
    contract::Fail(ErrorCode::kInvalidArgument,
                   "--out " + folder.string() + " holds files; allowed: a new or empty folder");
  }
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    contract::Fail(ErrorCode::kEnvironment, "--out " + folder.string() + ": cannot be written");
  }
  return folder;
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
  if (!keep_) std::filesystem::remove_all(path_, ignored);
}

void WriteResults(const std::filesystem::path& folder, const reports::Record& record) {
  reports::WriteRecord(folder / "record.json", record);
  contract::WriteFile(folder / "junit.xml", reports::ToJunitXml(record));
}

}  // namespace plumbline::cli
