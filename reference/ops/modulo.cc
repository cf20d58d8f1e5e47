// SPDX-License-Identifier: Apache-2.0
// Implements modulo.h.
#include "reference/ops/modulo.h"

#include <cmath>

namespace plumbline::reference {

double Mod(double x, double m) {
  const double remainder = std::fmod(x, m);  // exact, sign of x
  return remainder < 0 ? remainder + m : remainder;
}

double Wrap(double x, double b) { return Mod(x + b, 2 * b + 1) - b; }

}  // namespace plumbline::reference
