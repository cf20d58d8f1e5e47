// SPDX-License-Identifier: Apache-2.0
// What the facts about a machine mean: one finding for each part, and what a missing or weak part disables. A pure
// function, so every rule is tested without such a machine. The list of ids is documented in docs/doctor.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "conformance/environment/machine.h"

namespace plumbline::conformance {

enum class State { kOk, kWeak, kMissing };
std::string_view Name(State state);  // "ok", "weak", "missing"

struct Finding {
  std::string id = {};
  State state = State::kOk;
  std::string value = {};
  std::string disables = {};  // empty if and only if ok
  bool required = false;      // `verify` cannot run while this is missing
};

// In the order in which they are shown; "gpu0", "gpu1", ... stand behind "gpu_driver".
std::vector<Finding> Diagnose(const Machine& machine);

// Whether nothing that `verify` needs is missing.
bool CanVerify(const std::vector<Finding>& findings);

}  // namespace plumbline::conformance
