// SPDX-License-Identifier: Apache-2.0
// One case from its folder to its traces: starts the ranks as threads and reports the first error among them.
#pragma once

#include <cstdint>
#include <filesystem>

namespace plumbline::optimized {

// Ranks are threads of one process.
inline constexpr int64_t kMaxDataDegree = 64;

// Throws the error of the rank that failed first; the other ranks are released by the communicator.
void RunCase(const std::filesystem::path& case_dir, const std::filesystem::path& out_dir);

}  // namespace plumbline::optimized
