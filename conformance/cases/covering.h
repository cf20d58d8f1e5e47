// SPDX-License-Identifier: Apache-2.0
// Covering arrays: few rows in which every valid combination of values of any t axes occurs.
// Pure integers; what an axis means is not known here. Greedy over all valid rows, so it suits products up to about a
// million.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace plumbline::conformance {

struct Axis {
  std::string name;
  std::vector<std::string> values;
};

// One value index per axis.
using Row = std::vector<int>;

struct Covering {
  std::vector<Row> rows;
  int64_t num_tuples = 0;  // t-tuples that some valid row contains; the rows contain all of them
  // Value tuples that no valid row contains, as "data=3 accumulation=3".
  std::vector<std::string> excluded;
};

// Deterministic. 1 <= strength <= number of axes; no axis is empty.
Covering CoverTuples(const std::vector<Axis>& axes, int strength, const std::function<bool(const Row&)>& valid);

}  // namespace plumbline::conformance
