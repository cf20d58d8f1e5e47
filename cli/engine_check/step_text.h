// SPDX-License-Identifier: Apache-2.0
// What `plumbline engine check` prints, for people.
#pragma once

#include <string>

#include "cli/engine_check/step.h"

namespace plumbline::cli {

// A line; of a missing step what is expected and the command that shows it again besides.
std::string StepText(const Step& step);

// The last line. `engine`: as it was named.
std::string EndText(int num_ok, int num_not_claimed, bool complete, const std::string& engine);

}  // namespace plumbline::cli
