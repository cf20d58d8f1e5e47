// SPDX-License-Identifier: Apache-2.0
// Where the engines and data files of this build lie: in the runfiles beside the program.
#pragma once

#include <filesystem>

#include "conformance/runner/verify.h"

namespace plumbline::cli {

// Throws Internal if the program was moved away from its runfiles.
conformance::EngineSet OwnEngines();
std::filesystem::path DefaultText();

}  // namespace plumbline::cli
