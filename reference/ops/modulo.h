// SPDX-License-Identifier: Apache-2.0
// The mathematical mod and wrap(x; b) of docs/exact-family.md, "Two maps". C++'s own remainder is negative for a
// negative left side; this one never is.
#pragma once

namespace plumbline::reference {

// x mod m, in [0, m).   m > 0
double Mod(double x, double m);

// wrap(x; b) = ((x + b) mod (2b + 1)) − b, in [−b, b] on integers.   b ≥ 0
double Wrap(double x, double b);

}  // namespace plumbline::reference
