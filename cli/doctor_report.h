// SPDX-License-Identifier: Apache-2.0
// The findings of `doctor` as text and as JSON (docs/doctor.md). It judges nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/environment/diagnosis.h"
#include "conformance/environment/machine.h"

namespace plumbline::cli {

inline constexpr int64_t kDoctorSchema = 1;

// A line for each finding, below it what it disables, and a last line that says whether `verify` can run.
std::string DoctorText(const std::vector<conformance::Finding>& findings);

// One JSON object, schema kDoctorSchema.
std::string DoctorJson(const std::vector<conformance::Finding>& findings, const std::vector<conformance::Gpu>& gpus);

}  // namespace plumbline::cli
