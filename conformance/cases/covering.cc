// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/covering.h"

#include <algorithm>
#include <map>

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

// Every row of the product, in order.
void ForEachRow(const std::vector<Axis>& axes, const std::function<void(const Row&)>& visit) {
  Row row(axes.size(), 0);
  while (true) {
    visit(row);
    size_t axis = axes.size();
    while (axis > 0 && row[axis - 1] + 1 == static_cast<int>(axes[axis - 1].values.size())) row[--axis] = 0;
    if (axis == 0) return;
    ++row[axis - 1];
  }
}

std::vector<Row> ValidRows(const std::vector<Axis>& axes, const Objections& objections) {
  std::vector<Row> rows;
  ForEachRow(axes, [&](const Row& row) {
    if (objections(row).empty()) rows.push_back(row);
  });
  return rows;
}

// The value that each axis of a tuple has; -1 for the others.
Row ValuesOf(int64_t tuple, const std::vector<Axis>& axes, const std::vector<AxisSet>& sets) {
  size_t index = 0;
  while (index + 1 < sets.size() && sets[index + 1].first_tuple <= tuple) ++index;
  int64_t number = tuple - sets[index].first_tuple;
  Row values(axes.size(), -1);
  for (size_t i = sets[index].axes.size(); i-- > 0;) {
    const auto axis = static_cast<size_t>(sets[index].axes[i]);
    const auto count = static_cast<int64_t>(axes[axis].values.size());
    values[axis] = static_cast<int>(number % count);
    number /= count;
  }
  return values;
}

std::string Describe(const Row& values, const std::vector<Axis>& axes) {
  std::string text;
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    if (values[axis] < 0) continue;
    text += (text.empty() ? "" : " ") + axes[axis].name + "=" + axes[axis].values[static_cast<size_t>(values[axis])];
  }
  return text;
}

// Whether `row` has all values of the tuple.
bool Contains(const Row& row, const Row& tuple) {
  for (size_t axis = 0; axis < row.size(); ++axis) {
    if (tuple[axis] >= 0 && tuple[axis] != row[axis]) return false;
  }
  return true;
}

// Tuples that some valid row contains, by number.
std::vector<bool> Reachable(const std::vector<Axis>& axes, const std::vector<AxisSet>& sets, int64_t num_tuples,
                            const std::vector<Row>& rows) {
  std::vector<bool> reachable(static_cast<size_t>(num_tuples));
  for (const Row& row : rows) {
    for (int64_t tuple : TuplesOf(row, axes, sets)) reachable[static_cast<size_t>(tuple)] = true;
  }
  return reachable;
}

// Why no row that contains the tuple is valid.
std::string ReasonOf(const Row& tuple, const std::vector<Axis>& axes, const Objections& objections) {
  std::map<std::string, int64_t> reasons;  // and of how many rows
  int64_t num_rows = 0;
  ForEachRow(axes, [&](const Row& row) {
    if (!Contains(row, tuple)) return;
    ++num_rows;
    for (const std::string& reason : objections(row)) ++reasons[reason];
  });
  const bool common =
      std::any_of(reasons.begin(), reasons.end(), [&](const auto& reason) { return reason.second == num_rows; });
  std::string text;
  for (const auto& [reason, count] : reasons) {
    if (!common || count == num_rows) text += (text.empty() ? "" : ", or ") + reason;
  }
  return text;
}

std::vector<Exclusion> ExclusionsOf(const std::vector<Axis>& axes, int strength, const std::vector<Row>& valid,
                                    const Objections& objections) {
  std::vector<Row> tuples;
  for (int size = 1; size <= strength; ++size) {
    int64_t num_tuples = 0;
    const std::vector<AxisSet> sets = AxisSets(axes, size, num_tuples);
    const std::vector<bool> reachable = Reachable(axes, sets, num_tuples, valid);
    for (int64_t number = 0; number < num_tuples; ++number) {
      if (reachable[static_cast<size_t>(number)]) continue;
      const Row tuple = ValuesOf(number, axes, sets);
      const bool implied =
          std::any_of(tuples.begin(), tuples.end(), [&](const Row& smaller) { return Contains(tuple, smaller); });
      if (!implied) tuples.push_back(tuple);
    }
  }
  std::vector<Exclusion> excluded;
  for (const Row& tuple : tuples) excluded.push_back({Describe(tuple, axes), ReasonOf(tuple, axes, objections)});
  return excluded;
}

}  // namespace

Covering CoverTuples(const std::vector<Axis>& axes, int strength, const Objections& objections,
                     const std::vector<Row>& given) {
  contract::Check(strength >= 1 && strength <= static_cast<int>(axes.size()), "strength is between 1 and the axes");
  int64_t num_numbers = 0;
  const std::vector<AxisSet> sets = AxisSets(axes, strength, num_numbers);
  const std::vector<Row> candidates = ValidRows(axes, objections);
  std::vector<std::vector<int64_t>> tuples;
  for (const Row& row : candidates) tuples.push_back(TuplesOf(row, axes, sets));
  std::vector<bool> open = Reachable(axes, sets, num_numbers, candidates);  // and not yet covered

  Covering covering;
  covering.num_tuples = std::count(open.begin(), open.end(), true);
  covering.excluded = ExclusionsOf(axes, strength, candidates, objections);
  int64_t remaining = covering.num_tuples;
  const auto take = [&](size_t candidate) {
    for (int64_t tuple : tuples[candidate]) {
      if (open[static_cast<size_t>(tuple)]) --remaining;
      open[static_cast<size_t>(tuple)] = false;
    }
    covering.rows.push_back(candidates[candidate]);
  };
  for (const Row& row : given) {
    const auto found = std::find(candidates.begin(), candidates.end(), row);
    contract::Check(found != candidates.end(), "a given row is valid");
    take(static_cast<size_t>(found - candidates.begin()));
  }
  while (remaining > 0) {
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
    take(best);
  }
  return covering;
}

Coverage CoverageOf(const std::vector<Axis>& axes, const std::vector<Row>& rows, int strength,
                    const Objections& objections) {
  int64_t num_tuples = 0;
  const std::vector<AxisSet> sets = AxisSets(axes, strength, num_tuples);
  const std::vector<bool> valid = Reachable(axes, sets, num_tuples, ValidRows(axes, objections));
  const std::vector<bool> covered = Reachable(axes, sets, num_tuples, rows);
  return {strength, std::count(covered.begin(), covered.end(), true), std::count(valid.begin(), valid.end(), true)};
}

}  // namespace plumbline::conformance
