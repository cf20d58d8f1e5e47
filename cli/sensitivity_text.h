// SPDX-License-Identifier: Apache-2.0
// What the checks of a record could have shown: how sensitive the truths were, how near the cases came to their limits,
// and what the guards have planted. It judges nothing.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "reports/record/record.h"

namespace plumbline::cli {

// "... nearest to its limit: norm of pos.weight, 0.182 of it; ..." is 0.182; nothing where a detail does not say so.
std::optional<double> ShareOfLimit(std::string_view detail);

// The section of the summary, or nothing where no passing check says anything of the kind. A problem has one line of
// each check, for the gradient one of each storage type: of the case that came nearest to its limit, which is named.
// Limits and what they find are the problem's, and the same in all of its cases. Text of the record is printed as it
// is.
std::string SensitivityText(const reports::Record& record);

}  // namespace plumbline::cli
