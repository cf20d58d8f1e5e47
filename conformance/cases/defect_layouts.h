// SPDX-License-Identifier: Apache-2.0
// The layouts on which planted defects are tried: few, and different in problem, data degree, stage, accumulation,
// buckets, overlap and storage. Each is stated by all of its axes, so that they are the same in every tier, and a new
// case in the lists changes nothing about what a defect is tried on.
#pragma once

#include <string>
#include <vector>

#include "conformance/cases/problem.h"
#include "conformance/cases/tier.h"

namespace plumbline::conformance {

// Of a family ("exact", "gpt2"). Problems are numbered as in the family's own list. The tier decides how long the exact
// problems are trained.
std::vector<CaseSpec> DefectLayouts(const std::string& family, Tier tier);

}  // namespace plumbline::conformance
