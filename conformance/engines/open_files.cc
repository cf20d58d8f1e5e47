// SPDX-License-Identifier: Apache-2.0
#include "conformance/engines/open_files.h"

#include <algorithm>
#include <system_error>

namespace plumbline::conformance {

namespace fs = std::filesystem;

std::vector<std::string> OpenFilesIn(const fs::path& folder, pid_t pid) {
  std::vector<std::string> open;
  std::error_code gone;  // the process may end, or close what is listed, at any time
  const std::string prefix = fs::canonical(folder, gone).string() + "/";
  if (gone) return open;
  const fs::path descriptors = "/proc/" + std::to_string(pid) + "/fd";
  for (fs::directory_iterator it(descriptors, gone), end; !gone && it != end; it.increment(gone)) {
    std::error_code closed;
    const std::string target = fs::read_symlink(it->path(), closed).string();
    if (!closed && target.starts_with(prefix)) open.push_back(target.substr(prefix.size()));
  }
  std::sort(open.begin(), open.end());
  return open;
}

}  // namespace plumbline::conformance
