// SPDX-License-Identifier: Apache-2.0
// The layouts on which planted defects are tried: few, and different in problem, data degree, stage, accumulation,
// buckets, overlap and storage. Each is stated by all of its axes and is in the list of every tier, so that what a
// defect is tried on does not depend on how many combinations are covered.
#pragma once

#include <string>
#include <vector>

#include "conformance/cases/problem.h"

namespace plumbline::conformance {

// Of a family ("exact", "gpt2", "llama").
std::vector<AxisValues> DefectLayouts(const std::string& family);

// Whether one of them is of this problem in this storage type ("bf16").
bool HasDefectLayout(const Problem& problem, const std::string& storage);

}  // namespace plumbline::conformance
