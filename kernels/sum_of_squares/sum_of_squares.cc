// SPDX-License-Identifier: Apache-2.0
// CPU implementation of sum_of_squares.h.
#include "kernels/sum_of_squares/sum_of_squares.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "kernels/arguments.h"

namespace plumbline::kernels {
namespace {

constexpr int kDigitBits = 32;
constexpr double kDigitBase = 4294967296.0;
constexpr int kLowestExponent = -298;

// Squares of floats are exact in double. Missing elements of a last chunk count as 0.
double ChunkSum(const float* x, int64_t elems) {
  double lanes[kSquareSumChunkElems] = {};
  for (int64_t i = 0; i < elems; ++i) lanes[i] = static_cast<double>(x[i]) * static_cast<double>(x[i]);
  for (int64_t width = kSquareSumChunkElems / 2; width > 0; width /= 2) {
    for (int64_t i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  }
  return lanes[0];
}

// 2^exponent, for exponents of normal doubles.
double PowerOfTwo(int exponent) { return std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52); }

int UnitExponent(int64_t digit) { return kLowestExponent + kDigitBits * static_cast<int>(digit); }

// Adds a finite value >= 0, a multiple of 2^-298. Its 53 bits fall into at most three digits.
void Deposit(double value, SquareSum& sum) {
  if (value == 0) return;
  const auto exponent = static_cast<int>(std::bit_cast<uint64_t>(value) >> 52) - 1023;
  int64_t digit = (exponent - kLowestExponent) / kDigitBits;
  for (double rest = value; digit >= 0 && rest != 0; --digit) {
    const auto part = static_cast<double>(static_cast<int64_t>(rest * PowerOfTwo(-UnitExponent(digit))));
    sum.terms[digit] += part;
    rest -= part * PowerOfTwo(UnitExponent(digit));
  }
}

// What a sum of squares adds to the exact one.
void AddChunk(double chunk, SquareSum& sum) {
  if (std::isnan(chunk)) {
    sum.terms[SquareSum::kNanTerm] += 1;
  } else if (std::isinf(chunk)) {
    sum.terms[SquareSum::kInfinityTerm] += 1;
  } else {
    Deposit(chunk, sum);
  }
}

}  // namespace

void SquareSum::Add(const SquareSum& other) {
  for (size_t i = 0; i < terms.size(); ++i) terms[i] += other.terms[i];
}

void SquareSum::Carry() {
  for (int64_t digit = 0; digit + 1 < kNumDigits; ++digit) {
    const double carry = std::floor(terms[digit] / kDigitBase);
    terms[digit] -= carry * kDigitBase;
    terms[digit + 1] += carry;
  }
}

double SquareSum::Total() const {
  if (terms[kNanTerm] != 0) return std::numeric_limits<double>::quiet_NaN();
  if (terms[kInfinityTerm] != 0) return std::numeric_limits<double>::infinity();
  SquareSum carried = *this;
  carried.Carry();
  double total = 0;
  for (int64_t digit = 0; digit < kNumDigits; ++digit) {
    total += carried.terms[digit] * PowerOfTwo(UnitExponent(digit));  // upwards: what is rounded away is small
  }
  return total;
}

void CountNotFinite(int64_t first, std::span<const float> x, SquareSum& sum) {
  SquareSum all;
  AddSquares(first, x, all);
  for (const int64_t term : {SquareSum::kNanTerm, SquareSum::kInfinityTerm}) sum.terms[term] += all.terms[term];
}

void AddSquares(int64_t first, std::span<const float> x, SquareSum& sum) {
  Require(first >= 0 && first % kSquareSumChunkElems == 0, "sum_of_squares",
          "a slice must begin at a multiple of 32 elements of its tensor");
  AddSquaresOfPart(first, x, sum);
}

void AddSquaresOfPart(int64_t first, std::span<const float> x, SquareSum& sum) {
  Require(first >= 0, "sum_of_squares", "a part must not begin before its tensor");
  const auto size = static_cast<int64_t>(x.size());
  int64_t num_chunks = 0;
  int64_t end = 0;
  for (int64_t begin = 0; begin < size; begin = end) {
    end = std::min(size, begin + kSquareSumChunkElems - (first + begin) % kSquareSumChunkElems);
    AddChunk(ChunkSum(x.data() + begin, end - begin), sum);
    if (++num_chunks % kUncarriedSquares == 0) sum.Carry();
  }
  sum.Carry();
}

void AddSquaresToEach(std::span<const float> x, std::span<SquareSum> sums) {
  Require(x.size() == sums.size(), "sum_of_squares", "there must be a sum for each element");
  for (size_t i = 0; i < x.size(); ++i) {
    const auto value = static_cast<double>(x[i]);
    AddChunk(value * value, sums[i]);
  }
}

}  // namespace plumbline::kernels
