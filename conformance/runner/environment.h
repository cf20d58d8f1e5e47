// SPDX-License-Identifier: Apache-2.0
// The fingerprint of build and machine that goes into every record.
#pragma once

#include <map>
#include <string>

namespace plumbline::conformance {

// "compiler", "build_mode", "os", "kernel", "cpu_model", "cores".
std::map<std::string, std::string> EnvironmentFingerprint();

// Now, in UTC: "2030-01-31T23:59:59Z".
std::string UtcNow();

}  // namespace plumbline::conformance
