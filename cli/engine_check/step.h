// SPDX-License-Identifier: Apache-2.0
// What `plumbline engine check` says of one step: it is there, it is missing, or the engine does not claim it.
#pragma once

#include <functional>
#include <string>

namespace plumbline::cli {

struct Step {
  enum class State { kOk, kMissing, kNotClaimed };
  std::string name;
  State state = State::kOk;
  std::string seen = {};       // one line: what was found
  std::string reproduce = {};  // a command; only of a missing one
};

// Called with each step as soon as it is known; after a missing one there are no more.
using ShowStep = std::function<void(const Step&)>;

}  // namespace plumbline::cli
