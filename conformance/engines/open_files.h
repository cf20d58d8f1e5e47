// SPDX-License-Identifier: Apache-2.0
// Which files of a folder a process holds open, as /proc tells: what an engine forgets to close is seen without asking
// it. Mapped files whose descriptor was closed are not among them.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace plumbline::conformance {

// Paths relative to `folder`, sorted, deleted ones too; a file that is open twice is there twice. Empty where the
// process has ended or belongs to another user.
std::vector<std::string> OpenFilesIn(const std::filesystem::path& folder, pid_t pid);

}  // namespace plumbline::conformance
