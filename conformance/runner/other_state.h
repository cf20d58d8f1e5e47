// SPDX-License-Identifier: Apache-2.0
// The weights and the state in the folder of a case that resumes: none of them may be used (docs/formats.md, CASE_DIR),
// so they are other numbers than those the saving run began with, in every element. Real families only: no run of
// family exact resumes.
#pragma once

#include <vector>

#include "conformance/contract/case_file.h"

namespace plumbline::conformance {

// The state that belongs to `spec` as a case that resumes. Finite, and as large as a real one: an engine may look at
// what it reads. No moment is 0, as all are at the beginning.
std::vector<contract::RealParameterState> MakeOtherState(const contract::Case& spec);

}  // namespace plumbline::conformance
