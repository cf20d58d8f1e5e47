// SPDX-License-Identifier: Apache-2.0
// Makes a failing case smaller while it still fails, over the axes of shrink_axes.h: first all axes at their least at
// once; where that no longer fails, the halves of the list each, down to single axes, and on one axis by bisection.
// Repeated until a pass changes nothing. Pure but for the question that the caller answers; no clock, no randomness.
// Source: Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002 (delta debugging).
#pragma once

#include <cstdint>
#include <functional>

#include "conformance/cases/shrink_axes.h"
#include "conformance/contract/case_file.h"

namespace plumbline::conformance {

struct ShrinkResult {
  contract::Case smallest;  // the start, where nothing smaller failed
  int64_t tried = 0;        // cases about which the question was asked, each once
  bool finished = false;    // false: given up before nothing smaller was left to try
};

// `still_fails` is asked about valid cases that are smaller than the last for which it said yes; `give_up` before each
// question. Every case that it says yes to is kept, so whenever it gives up the result is one that failed.
ShrinkResult Shrink(const contract::Case& start, const std::function<bool(const contract::Case&)>& still_fails,
                    const std::function<bool()>& give_up);

}  // namespace plumbline::conformance
