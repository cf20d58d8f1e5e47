// SPDX-License-Identifier: Apache-2.0
// The steps of an engine check that are made on the first case (first_case.h), one rank each: from "it runs" to a whole
// run of some steps, save and resume, and the batch form. Numbers are compared in family exact only, where every digest
// must equal the reference's; of a real family, traces and dumps are read, and the numbers are for the listed steps.
#pragma once

#include <filesystem>
#include <stop_token>

#include "cli/engine_check/step.h"
#include "conformance/contract/batch_source.h"
#include "conformance/runner/truths.h"

namespace plumbline::cli {

// False after a missing step. Folders of cases and of what was run stay below `folder`. contract::Error of the
// reference or the machine only.
bool CheckFirstSteps(const conformance::Engine& reference, const conformance::Engine& candidate,
                     const contract::TokenSource& source, const std::filesystem::path& folder, std::stop_token stop,
                     const ShowStep& show);

}  // namespace plumbline::cli
