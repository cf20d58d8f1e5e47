// SPDX-License-Identifier: Apache-2.0
// The weights and the state in the folder of a case that resumes: none of them may be used (docs/formats.md, CASE_DIR),
// so they are other numbers than those the saving run began with, in every element. Valid, finite and of the usual
// size: an engine may look at what it reads.
#pragma once

#include "conformance/contract/case_file.h"

namespace plumbline::conformance {

// Replaces every weight and every moment of the initial state that `data` holds. No moment is 0 then, as all are at the
// beginning.
void ReplaceState(contract::CaseData& data);

}  // namespace plumbline::conformance
