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

// Why a row cannot be: every reason; empty where it can.
using Objections = std::function<std::vector<std::string>(const Row&)>;

// A combination of values that no valid row contains.
struct Exclusion {
  std::string tuple;   // "data=3 accumulation=3"
  std::string reason;  // what all rows that contain it have in common, or else all their reasons

  friend bool operator==(const Exclusion&, const Exclusion&) = default;
};

struct Covering {
  std::vector<Row> rows;
  int64_t num_tuples = 0;  // t-tuples that some valid row contains; the rows contain all of them
  // Of 1 to t values, without those that contain a smaller one of the list.
  std::vector<Exclusion> excluded;
};

// Deterministic. 1 <= strength <= number of axes; no axis is empty. The rows begin with those that are `given`, which
// must be valid and different.
Covering CoverTuples(const std::vector<Axis>& axes, int strength, const Objections& objections,
                     const std::vector<Row>& given);

// How many of the tuples that valid rows contain `rows` contain.
struct Coverage {
  int strength = 0;
  int64_t covered = 0;
  int64_t valid = 0;
};
Coverage CoverageOf(const std::vector<Axis>& axes, const std::vector<Row>& rows, int strength,
                    const Objections& objections);

}  // namespace plumbline::conformance
