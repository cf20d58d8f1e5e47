// SPDX-License-Identifier: Apache-2.0
// Where else the elements of a tensor may have been read from: the parts that ranks hold exchanged, read from the
// beginning of the tensor, or everything moved by a few elements. Maps of indices, no arithmetic on values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/diagnosis/evidence.h"

namespace plumbline::conformance {

struct Displacement {
  std::string what;
  std::vector<int64_t> source;  // by element: the index it is read from, or -1 for its own
  int num_fitted = 0;
};

// Never the identity.
std::vector<Displacement> Displacements(const Evidence& evidence);

Values Displaced(const Values& values, const Displacement& displacement);

}  // namespace plumbline::conformance
