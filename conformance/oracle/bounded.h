// SPDX-License-Identifier: Apache-2.0
// A number from a formula, and how far what an engine stores may be from it.
#pragma once

namespace plumbline::conformance {

inline constexpr double kFp32Rounding = 0x1p-24;  // half an ulp of fp32, relative: one rounding

// |what the engine stores - value| <= bound.
struct Bounded {
  double value = 0;
  double bound = 0;

  // Positive form. Classes first: where the formula gives NaN or Inf the engine must have stored that, and no bound
  // excuses another value.
  bool Holds(double stored) const;
};

}  // namespace plumbline::conformance
