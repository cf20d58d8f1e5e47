// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/covering.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace plumbline::conformance {
namespace {

std::vector<Axis> AxesOfSizes(const std::vector<int>& sizes) {
  std::vector<Axis> axes;
  for (size_t i = 0; i < sizes.size(); ++i) {
    axes.push_back({"axis" + std::to_string(i), {}});
    for (int value = 0; value < sizes[i]; ++value) axes.back().values.push_back(std::to_string(value));
  }
  return axes;
}

// Every valid row of the whole product.
std::vector<Row> Product(const std::vector<int>& sizes, const std::function<bool(const Row&)>& valid) {
  std::vector<Row> rows = {{}};
  for (int size : sizes) {
    std::vector<Row> longer;
    for (const Row& row : rows) {
      for (int value = 0; value < size; ++value) {
        longer.push_back(row);
        longer.back().push_back(value);
      }
    }
    rows = longer;
  }
  std::erase_if(rows, [&](const Row& row) { return !valid(row); });
  return rows;
}

// Written another way than the code under test: sets of (axis, value) pairs.
std::set<std::map<size_t, int>> TuplesOf(const std::vector<Row>& rows, int strength) {
  std::set<std::map<size_t, int>> tuples;
  for (const Row& row : rows) {
    for (unsigned mask = 0; mask < (1u << row.size()); ++mask) {
      if (__builtin_popcount(mask) != strength) continue;
      std::map<size_t, int> tuple;
      for (size_t axis = 0; axis < row.size(); ++axis) {
        if (mask >> axis & 1) tuple[axis] = row[axis];
      }
      tuples.insert(tuple);
    }
  }
  return tuples;
}

using Reasons = std::vector<std::string>;

Objections Objecting(const std::function<bool(const Row&)>& valid) {
  return [valid](const Row& row) { return valid(row) ? Reasons{} : Reasons{"it is forbidden"}; };
}

struct Shape {
  std::vector<int> sizes;
  int strength;
};

class CoveringOfShape : public testing::TestWithParam<Shape> {};

TEST_P(CoveringOfShape, ContainsEveryValidTupleAndNoInvalidRow) {
  const auto& [sizes, strength] = GetParam();
  const auto valid = [](const Row& row) { return (row.front() + 2 * row.back()) % 5 != 3; };
  const std::vector<Row> product = Product(sizes, valid);
  const Covering covering = CoverTuples(AxesOfSizes(sizes), strength, Objecting(valid), {});
  for (const Row& row : covering.rows) EXPECT_TRUE(valid(row));
  const auto expected = TuplesOf(product, strength);
  EXPECT_EQ(TuplesOf(covering.rows, strength), expected);
  EXPECT_EQ(covering.num_tuples, static_cast<int64_t>(expected.size()));
  EXPECT_LE(covering.rows.size(), product.size());
  for (int size = 1; size <= strength; ++size) {
    const auto some = static_cast<int64_t>(TuplesOf(product, size).size());
    const Coverage coverage = CoverageOf(AxesOfSizes(sizes), covering.rows, size, Objecting(valid));
    EXPECT_EQ(coverage.covered, some);
    EXPECT_EQ(coverage.valid, some);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, CoveringOfShape,
                         testing::Values(Shape{{1}, 1}, Shape{{7}, 1}, Shape{{2, 3}, 2}, Shape{{3, 1, 4}, 2},
                                         Shape{{4, 5, 3, 3, 4, 2}, 2}, Shape{{4, 5, 3, 3, 4, 2}, 3},
                                         Shape{{2, 2, 2, 2, 2}, 5}));

TEST(Covering, NamesTheSmallestTuplesThatNoRowContainsAndWhy) {
  // 2 with 2 is forbidden; so is c with anything, for one of two reasons.
  const auto objections = [](const Row& row) {
    Reasons reasons;
    if (row[0] == 1 && row[1] == 2) reasons.push_back("too large");
    if (row[2] == 1) reasons.push_back(row[0] == 0 ? "not with one" : "not with two");
    return reasons;
  };
  const Covering covering =
      CoverTuples({{"data", {"1", "2"}}, {"zero", {"0", "1", "2"}}, {"mode", {"a", "c"}}}, 3, objections, {});
  EXPECT_EQ(covering.excluded, (std::vector<Exclusion>{{"mode=c", "not with one, or not with two, or too large"},
                                                       {"data=2 zero=2", "too large"}}));
  EXPECT_EQ(covering.num_tuples, 5);
}

TEST(Covering, CountsOnlyWhatTheRowsContain) {
  const std::vector<Axis> axes = AxesOfSizes({2, 3, 2});
  const Objections none = [](const Row&) { return Reasons{}; };
  const Coverage pairs = CoverageOf(axes, {{0, 0, 0}, {0, 1, 1}}, 2, none);
  EXPECT_EQ(pairs.covered, 6);
  EXPECT_EQ(pairs.valid, 2 * 3 + 3 * 2 + 2 * 2);
  EXPECT_EQ(CoverageOf(axes, {}, 3, none).covered, 0);
}

TEST(Covering, BeginsWithTheGivenRowsAndAddsOnlyWhatTheyLack) {
  const std::vector<Axis> axes = AxesOfSizes({2, 3});
  const Objections none = [](const Row&) { return Reasons{}; };
  const std::vector<Row> given = {{1, 2}, {0, 0}, {1, 1}};
  const Covering covering = CoverTuples(axes, 2, none, given);
  ASSERT_EQ(covering.rows.size(), 6u);
  EXPECT_TRUE(std::equal(given.begin(), given.end(), covering.rows.begin()));
  EXPECT_EQ(TuplesOf(covering.rows, 2).size(), 6u);
  // With nothing left to cover they are all there is.
  EXPECT_EQ(CoverTuples(axes, 1, none, {{0, 0}, {1, 1}, {1, 2}}).rows.size(), 3u);
}

TEST(Covering, OfPairsIsMuchSmallerThanTheProduct) {
  const Covering covering = CoverTuples(AxesOfSizes({5, 3, 3, 4, 2, 4}), 2, [](const Row&) { return Reasons{}; }, {});
  EXPECT_LE(covering.rows.size(), 30u);  // 1,440 in the product, 20 at the least
}

}  // namespace
}  // namespace plumbline::conformance
