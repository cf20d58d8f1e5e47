// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/covering.h"

#include <algorithm>
#include <numeric>

#include "conformance/contract/error.h"

namespace plumbline::conformance {
namespace {

// A choice of `strength` axes, and where its tuples are numbered.
struct AxisSet {
  std::vector<int> axes;
  int64_t first_tuple = 0;
};

std::vector<AxisSet> AxisSets(const std::vector<Axis>& axes, int strength, int64_t& num_tuples) {
  std::vector<bool> chosen(axes.size());
  std::fill(chosen.begin(), chosen.begin() + strength, true);
  std::vector<AxisSet> sets;
  num_tuples = 0;
  do {
    AxisSet set{{}, num_tuples};
    int64_t size = 1;
    for (size_t axis = 0; axis < axes.size(); ++axis) {
      if (!chosen[axis]) continue;
      set.axes.push_back(static_cast<int>(axis));
      size *= static_cast<int64_t>(axes[axis].values.size());
    }
    sets.push_back(std::move(set));
    num_tuples += size;
  } while (std::prev_permutation(chosen.begin(), chosen.end()));
  return sets;
}

// Tuple numbers of a row, one for each set of axes.
std::vector<int64_t> TuplesOf(const Row& row, const std::vector<Axis>& axes, const std::vector<AxisSet>& sets) {
  std::vector<int64_t> tuples;
  tuples.reserve(sets.size());
  for (const AxisSet& set : sets) {
    int64_t number = 0;
    for (int axis : set.axes) {
      number =
          number * static_cast<int64_t>(axes[static_cast<size_t>(axis)].values.size()) + row[static_cast<size_t>(axis)];
    }
    tuples.push_back(set.first_tuple + number);
  }
  return tuples;
}

std::vector<Row> ValidRows(const std::vector<Axis>& axes, const std::function<bool(const Row&)>& valid) {
  std::vector<Row> rows;
  Row row(axes.size(), 0);
  while (true) {
    if (valid(row)) rows.push_back(row);
    size_t axis = axes.size();
    while (axis > 0 && row[axis - 1] + 1 == static_cast<int>(axes[axis - 1].values.size())) row[--axis] = 0;
    if (axis == 0) return rows;
    ++row[axis - 1];
  }
}

std::string Describe(int64_t tuple, const std::vector<Axis>& axes, const std::vector<AxisSet>& sets) {
  size_t index = 0;
  while (index + 1 < sets.size() && sets[index + 1].first_tuple <= tuple) ++index;
  int64_t number = tuple - sets[index].first_tuple;
  std::string text;
  for (size_t i = sets[index].axes.size(); i-- > 0;) {
    const Axis& axis = axes[static_cast<size_t>(sets[index].axes[i])];
    const auto count = static_cast<int64_t>(axis.values.size());
    text = axis.name + "=" + axis.values[static_cast<size_t>(number % count)] + (text.empty() ? "" : " ") + text;
    number /= count;
  }
  return text;
}

}  // namespace

Covering CoverTuples(const std::vector<Axis>& axes, int strength, const std::function<bool(const Row&)>& valid) {
  contract::Check(strength >= 1 && strength <= static_cast<int>(axes.size()), "strength is between 1 and the axes");
  int64_t num_numbers = 0;
  const std::vector<AxisSet> sets = AxisSets(axes, strength, num_numbers);
  const std::vector<Row> candidates = ValidRows(axes, valid);
  std::vector<std::vector<int64_t>> tuples;
  std::vector<bool> open(static_cast<size_t>(num_numbers));  // reachable and not yet covered
  for (const Row& row : candidates) {
    tuples.push_back(TuplesOf(row, axes, sets));
    for (int64_t tuple : tuples.back()) open[static_cast<size_t>(tuple)] = true;
  }

  Covering covering;
  for (int64_t tuple = 0; tuple < num_numbers; ++tuple) {
    if (open[static_cast<size_t>(tuple)]) {
      ++covering.num_tuples;
    } else {
      covering.excluded.push_back(Describe(tuple, axes, sets));
    }
  }
  for (int64_t remaining = covering.num_tuples; remaining > 0;) {
    size_t best = 0;
    int64_t best_gain = 0;
    for (size_t i = 0; i < candidates.size(); ++i) {
      const int64_t gain = std::count_if(tuples[i].begin(), tuples[i].end(),
                                         [&](int64_t tuple) { return open[static_cast<size_t>(tuple)]; });
      if (gain > best_gain) {
        best = i;
        best_gain = gain;
      }
    }
    for (int64_t tuple : tuples[best]) open[static_cast<size_t>(tuple)] = false;
    covering.rows.push_back(candidates[best]);
    remaining -= best_gain;
  }
  return covering;
}

}  // namespace plumbline::conformance
