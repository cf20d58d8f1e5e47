// SPDX-License-Identifier: Apache-2.0
// The reference as an engine (docs/formats.md): what it can do, and one case from its folder to OUT_DIR with trace,
// dumps and, in family exact, certificate. It computes the global batch at once in fp64, so storage type, ZeRO stage
// and bucket size change nothing in it; a layout that has parts (data degree or accumulation above 1) it declines, for
// it would have no such parts to report.
#pragma once

#include <filesystem>

#include "conformance/contract/engine_protocol.h"

namespace plumbline::reference {

contract::EngineDescription Description();

// Errors: InvalidArgument for a malformed case; Unsupported for mesh.data or accumulation above 1, and for saving and
// resuming; Environment if OUT_DIR cannot be written; Internal if a gradient of family exact is not an integer.
void RunCase(const std::filesystem::path& case_dir, const std::filesystem::path& out_dir);

}  // namespace plumbline::reference
