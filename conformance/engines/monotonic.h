// SPDX-License-Identifier: Apache-2.0
// Seconds of a clock that never jumps, as a double: sums with any time-out, however large, stay defined.
#pragma once

#include <chrono>

namespace plumbline::conformance {

inline double MonotonicSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace plumbline::conformance
