// SPDX-License-Identifier: Apache-2.0
// What `verify --list --json` and `verify --coverage --json` print: one object each (docs/formats.md). What they print
// without --json is for people and no format.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "conformance/cases/problem.h"

namespace plumbline::cli {

std::string ListJson(const std::vector<std::string>& ids);

std::string CoverageJson(std::string_view tier, const std::vector<conformance::FamilyCoverage>& families);

}  // namespace plumbline::cli
