// SPDX-License-Identifier: Apache-2.0
// Whole files in and out, with errors that name the path and the reason.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace plumbline::contract {

// InvalidArgument if it is no regular file, cannot be read, or is longer than max_bytes.
std::string ReadFile(const std::filesystem::path& path, uint64_t max_bytes = uint64_t{1} << 30);

// The same for folder / name. Messages name the file by `name` alone: what is said of a case's output does not depend
// on where it lies, so that two runs that fail alike say the same.
std::string ReadFileOf(const std::filesystem::path& folder, const std::string& name,
                       uint64_t max_bytes = uint64_t{1} << 30);

// Temporary neighbour, then rename: a reader sees the old content or the new, never half. Environment if it cannot.
void WriteFile(const std::filesystem::path& path, std::string_view content);

}  // namespace plumbline::contract
