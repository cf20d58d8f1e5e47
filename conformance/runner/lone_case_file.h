// SPDX-License-Identifier: Apache-2.0
// A case in a file of its own, which `verify --case-file` runs: a case.json (docs/formats.md) of a whole trajectory.
#pragma once

#include <filesystem>

#include "conformance/contract/case_file.h"

namespace plumbline::conformance {

// InvalidArgument for a file that is malformed, unreadable, or holds a case that cannot be judged alone: one line that
// names the file, the field and what is allowed.
contract::Case ReadLoneCase(const std::filesystem::path& path);

// Environment if it cannot be written. Makes the folder.
void WriteLoneCase(const std::filesystem::path& path, const contract::Case& spec);

}  // namespace plumbline::conformance
