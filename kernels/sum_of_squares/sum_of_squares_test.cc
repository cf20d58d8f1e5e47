// SPDX-License-Identifier: Apache-2.0
// The sum against long double, and its point: the same bits for every cut, order and number of holders.
#include "kernels/sum_of_squares/sum_of_squares.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/testing/reals.h"

namespace plumbline::kernels {
namespace {

using testing::Guarded;
using testing::Reals;
using testing::Within;

// Magnitudes over the whole range of float: sums in double of these depend on their order.
std::vector<double> MakeValues(int64_t size, int64_t low_exponent, int64_t high_exponent) {
  testing::Integers integers(static_cast<uint64_t>(size));
  std::vector<double> values;
  for (int64_t i = 0; i < size; ++i) {
    const double mantissa = static_cast<double>(integers.In(-16777216, 16777216)) * 0x1p-24;
    values.push_back(
        static_cast<float>(std::ldexp(mantissa, static_cast<int>(integers.In(low_exponent, high_exponent)))));
  }
  return values;
}

double Sum(const std::vector<double>& values, int64_t offset) {
  SquareSum sum;
  AddSquares(0, Guarded<float>(values, offset).view(), sum);
  return sum.Total();
}

TEST_CASE("SumOfSquaresKeepsItsDeclaredErrorAtEverySizeAndOffset") {
  for (const auto& [low, high] : {std::pair{-3, 3}, std::pair{-149, 127}, std::pair{-148, -120}, std::pair{120, 127}}) {
    testing::ForEachPlacement([&, low = low, high = high](int64_t size, int64_t offset) {
      const std::vector<double> values = MakeValues(size, low, high);
      long double exact = 0;
      for (const double value : values) exact += static_cast<long double>(value) * value;
      const auto expected = static_cast<double>(exact);
      REQUIRE(Within(Sum(values, offset), expected, kSquareSumMaxUnits * 0x1p-53 * expected));
    });
  }
}

TEST_CASE("SumOfSquaresHasTheSameBitsForEveryCutOrderAndHolder") {
  constexpr int64_t kSize = 1000;
  const std::vector<double> values = MakeValues(kSize, -149, 127);
  const double whole = Sum(values, 0);
  testing::Integers integers(5);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<int64_t> cuts = {0, kSize};
    for (int64_t i = integers.In(0, 12); i > 0; --i) cuts.push_back(32 * integers.In(0, kSize / 32));
    std::sort(cuts.begin(), cuts.end());
    std::vector<size_t> order;
    for (size_t i = 0; i + 1 < cuts.size(); ++i) order.push_back(i);
    for (size_t i = order.size(); i-- > 1;) std::swap(order[i], order[integers.In(0, static_cast<int64_t>(i))]);
    std::vector<SquareSum> holders(integers.In(1, 4));
    for (const size_t i : order) {
      const std::vector<double> slice(values.begin() + cuts[i], values.begin() + cuts[i + 1]);
      AddSquares(cuts[i], Guarded<float>(slice, integers.In(0, 16)).view(),
                 holders[integers.In(0, static_cast<int64_t>(holders.size()) - 1)]);
    }
    SquareSum total;
    for (const SquareSum& holder : holders) total.Add(holder);
    REQUIRE(testing::SameBits(total.Total(), whole));
  }
}

TEST_CASE("SumOfSquaresOfManyEqualNumbersIsExact") {
  std::vector<float> ones(1 << 20, 3.0f);
  SquareSum sum;
  for (int i = 0; i < 4; ++i) AddSquares(0, ones, sum);
  REQUIRE(sum.Total() == 9.0 * 4 * (1 << 20));
  SquareSum many;
  for (int i = 0; i < 1000; ++i) many.Add(sum);
  REQUIRE(many.Total() == 9.0 * 4000 * (1 << 20));
  const SquareSum before = many;
  many.Carry();
  REQUIRE(many.Total() == before.Total());
  for (int64_t i = 0; i < SquareSum::kNumDigits; ++i) REQUIRE((many.terms[i] >= 0 && many.terms[i] < 4294967296.0));
}

TEST_CASE("SumOfSquaresTakesTheWholeRangeOfFloat") {
  const float largest = std::numeric_limits<float>::max(), smallest = std::numeric_limits<float>::denorm_min();
  REQUIRE(Sum({smallest}, 0) == 0x1p-298);
  REQUIRE(Sum({largest}, 0) == static_cast<double>(largest) * largest);
  REQUIRE(Sum(std::vector<double>(64, largest), 0) == 64 * (static_cast<double>(largest) * largest));
  REQUIRE(Sum({}, 0) == 0);
  REQUIRE(Sum({0.0, -0.0}, 0) == 0);
}

TEST_CASE("SumOfSquaresFindsNanAndInfinityWhereverTheyAre") {
  for (int64_t place = 0; place < 70; ++place) {
    for (const float bad : {NAN, INFINITY, -INFINITY}) {
      std::vector<float> values(70, 1);
      values[place] = bad;
      SquareSum sum;
      AddSquares(0, values, sum);
      REQUIRE(!sum.AllFinite());
      REQUIRE((std::isnan(bad) ? std::isnan(sum.Total()) : std::isinf(sum.Total())));
    }
  }
  SquareSum fine;
  AddSquares(0, std::vector<float>(70, std::numeric_limits<float>::max()), fine);
  REQUIRE(fine.AllFinite());
}

TEST_CASE("AddSquaresOfPartHasTheSameBitsForEveryCutBetweenChunks") {
  const std::vector<double> values = MakeValues(200, -149, 127);
  const std::vector<float> x(values.begin(), values.end());
  const auto add = [&](int64_t begin, int64_t end, SquareSum& sum) {
    AddSquaresOfPart(begin, std::span(x).subspan(begin, end - begin), sum);
  };
  for (const auto& [begin, end] : {std::pair{5, 190}, std::pair{31, 33}, std::pair{40, 41}, std::pair{32, 96}}) {
    SquareSum whole;
    add(begin, end, whole);
    long double exact = 0;
    for (int i = begin; i < end; ++i) exact += static_cast<long double>(values[i]) * values[i];
    const auto expected = static_cast<double>(exact);
    REQUIRE(Within(whole.Total(), expected, kSquareSumMaxUnits * 0x1p-53 * expected));
    for (int64_t cut = (begin + 31) / 32 * 32; cut <= end; cut += 32) {
      SquareSum parts;
      add(cut, end, parts);
      add(begin, cut, parts);
      REQUIRE(parts.terms == whole.terms);
    }
  }
  SquareSum sum;
  REQUIRE_THROWS_WITH(AddSquaresOfPart(-1, x, sum), Catch::Contains("before its tensor"));
}

TEST_CASE("AddSquaresToEachIsExactAndKeepsSumsApart") {
  const float large = 0x1.fffffep127f, small = 0x1p-149f;
  std::vector<SquareSum> sums(6);
  AddSquaresToEach(std::vector<float>{3, large, small, 0, NAN, 1}, sums);
  AddSquaresToEach(std::vector<float>{-4, small, small, -0.0f, INFINITY, -INFINITY}, sums);
  const double large_square = double{large} * double{large};
  const double expected[] = {25, large_square, 0x1p-297, 0};
  for (int i = 0; i < 4; ++i) REQUIRE((sums[i].AllFinite() && sums[i].Total() == expected[i]));
  REQUIRE((std::isnan(sums[4].Total()) && sums[5].Total() == INFINITY));
  AddSquaresToEach(std::vector<float>{large}, std::span(sums).subspan(2, 1));
  REQUIRE(sums[2].terms[0] == 2);  // in units of 2^-298: beside a large number nothing small is lost
  REQUIRE_THROWS_WITH(AddSquaresToEach(std::vector<float>(5), sums), Catch::Contains("for each element"));
}

TEST_CASE("AddSquaresToEachNeedsNoCarryForAsManySquaresAsItSays") {
  std::vector<SquareSum> sum(1);
  const std::vector<float> one = {0x1.fffffep0f};
  for (int64_t i = 0; i < kUncarriedSquares; ++i) AddSquaresToEach(one, sum);
  sum[0].Carry();
  REQUIRE(sum[0].Total() == static_cast<double>(kUncarriedSquares) * (double{one[0]} * double{one[0]}));
}

TEST_CASE("WhatIsNotFiniteIsCountedAsInTheSumWithoutItsSquares") {
  std::vector<float> values(100, 3);
  SquareSum sum;
  AddSquares(0, std::vector<float>{2}, sum);
  CountNotFinite(0, values, sum);
  REQUIRE((sum.Total() == 4 && sum.AllFinite()));
  values[40] = INFINITY;
  CountNotFinite(32, std::vector<float>(values.begin() + 32, values.end()), sum);
  REQUIRE((std::isinf(sum.Total()) && sum.terms[SquareSum::kInfinityTerm] == 1));
  values[99] = NAN;
  CountNotFinite(0, values, sum);
  REQUIRE((std::isnan(sum.Total()) && sum.terms[SquareSum::kInfinityTerm] == 2 && sum.terms[SquareSum::kNanTerm] == 1));
  REQUIRE_THROWS_WITH(CountNotFinite(1, values, sum), Catch::Contains("multiple of 32"));
}

TEST_CASE("SumOfSquaresRefusesSlicesThatBeginInsideAChunk") {
  const std::vector<float> values(3);
  SquareSum sum;
  for (const int64_t first : {int64_t{-32}, int64_t{1}, int64_t{31}}) {
    REQUIRE_THROWS_WITH(AddSquares(first, values, sum), Catch::Contains("multiple of 32"));
  }
}

}  // namespace
}  // namespace plumbline::kernels
