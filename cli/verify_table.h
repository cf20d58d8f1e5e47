// SPDX-License-Identifier: Apache-2.0
// A record of `verify` as text for a terminal: a row per problem and engine, then everything that is not PASS, then the
// planted defects, then one line with the verdict.
#pragma once

#include <string>

#include "reports/record/record.h"

namespace plumbline::cli {

// `verbose` adds a line for each case.
std::string VerifyTable(const reports::Record& record, bool verbose);

}  // namespace plumbline::cli
