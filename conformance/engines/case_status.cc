// SPDX-License-Identifier: Apache-2.0
// Reads status.json of a foreign engine.
#include "conformance/engines/case_status.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>

#include "conformance/contract/error.h"
#include "conformance/contract/file_io.h"
#include "conformance/engines/one_line.h"

namespace plumbline::conformance {
namespace {

constexpr uint64_t kMaxStatusBytes = uint64_t{1} << 20;

double AgeSeconds(const timespec& written) {
  const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  return std::max(0.0, now - (static_cast<double>(written.tv_sec) + 1e-9 * static_cast<double>(written.tv_nsec)));
}

}  // namespace

bool HasStatus(const std::filesystem::path& out_dir) {
  struct stat info;
  return lstat((out_dir / "status.json").c_str(), &info) == 0;
}

std::optional<StatusSighting> LookForStatus(const std::filesystem::path& out_dir) {
  const std::filesystem::path path = out_dir / "status.json";
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) return std::nullopt;
  StatusSighting sighting{.status = std::nullopt, .problem = "", .age_s = AgeSeconds(info.st_mtim)};
  if (!S_ISREG(info.st_mode)) {  // reading a pipe would hang, a link may lead anywhere
    sighting.problem = "not a regular file";
    return sighting;
  }
  try {
    const std::string text = contract::ReadFileOf(out_dir, "status.json", kMaxStatusBytes);
    sighting.status = contract::ParseCaseStatus(text, "status.json");
    sighting.status->message = OneLine(sighting.status->message);
  } catch (const contract::Error& error) {
    sighting.problem = info.st_size == 0 ? "status.json is empty" : OneLine(error.what());
  }
  return sighting;
}

}  // namespace plumbline::conformance
