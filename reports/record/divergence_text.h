// SPDX-License-Identifier: Apache-2.0
// What a report says of a first divergence: where it is, and which hypotheses explain it how well. No judgement:
// nothing here changes a verdict.
#pragma once

#include <optional>
#include <string>

#include "reports/record/record.h"

namespace plumbline::reports {

// Lines that begin with `indent`; empty without a divergence.
std::string DivergenceText(const std::optional<DivergenceRecord>& divergence, const std::string& indent);

}  // namespace plumbline::reports
