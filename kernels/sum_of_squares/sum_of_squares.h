// SPDX-License-Identifier: Apache-2.0
// The sum of squares of a tensor that may lie in pieces on many ranks, so that it does not depend on the pieces.
//
// Squares are summed in chunks of 32 elements, counted from the beginning of the tensor, in double in a fixed tree;
// chunk sums are added without rounding, as integers in units of 2^-298, the last place of the square of the smallest
// float. Such sums are associative: whoever holds which chunks, in whatever order they are added, the result has the
// same bits, and adding the terms of all ranks element by element (an all-reduce of doubles) is exact too.
//
// Example: SquareSum sum; for each slice: AddSquares(slice.begin, gradient, sum); sum.Carry();
//          all-reduce sum.terms; norm = sqrt(sum.Total()).
// Source: Kulisch accumulator (Kulisch, Miranker 1986); docs/semantics.md, "One step" (norm).
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace plumbline::kernels {

// Declared maximum error of Total, in units of 2^-53 of the result: five additions in a chunk, and
// two at the end; the rest is of second order.
inline constexpr double kSquareSumMaxUnits = 8;

inline constexpr int64_t kSquareSumChunkElems = 32;

// An integer in digits of 32 bits, held in doubles, which stay exact below 2^53; then the number of chunks that hold a
// NaN, and of those that hold an infinity and no NaN.
struct SquareSum {
  static constexpr int64_t kNumDigits = 19;  // 2^-298 to 2^310: 2^48 times the square of the largest float
  static constexpr int64_t kNanTerm = kNumDigits;
  static constexpr int64_t kInfinityTerm = kNumDigits + 1;

  std::array<double, kNumDigits + 2> terms{};

  // Adds another sum. The terms may then need Carry: at most 2^20 carried sums may be added in between.
  void Add(const SquareSum& other);

  // Brings every digit but the highest into [0, 2^32). Changes no value.
  void Carry();

  // NaN if there was a NaN, else infinity if there was an infinity, else the sum as a double.
  double Total() const;

  bool AllFinite() const { return terms[kNanTerm] == 0 && terms[kInfinityTerm] == 0; }
};

// AddSquares: sum += sum over the slice of x^2.
//   first [1]  in      index of x[0] in its tensor, a multiple of kSquareSumChunkElems
//   x     [n]  in      f32  n is a multiple of kSquareSumChunkElems, or the slice is the tensor's end
//   sum        in-out  carried before and after
// Units: those of x squared. Bitwise repeatable, and independent of how the tensor is cut into such slices and of the
// order in which they are added. Max error of Total vs f64: kSquareSumMaxUnits * 2^-53 relative; NaN and infinity as in
// SquareSum::Total. Errors: InvalidArgument if first is negative or no multiple of kSquareSumChunkElems.
// Source: docs/semantics.md, "One step" (norm).
void AddSquares(int64_t first, std::span<const float> x, SquareSum& sum);

// AddSquaresOfPart: the same of a part of a tensor whose sum is a sum of its own, a row, say, which may begin and end
// anywhere. Chunks are counted from the beginning of the tensor all the same: whoever holds which chunks, the sum of
// the part has the same bits. Errors: InvalidArgument if first is negative.
void AddSquaresOfPart(int64_t first, std::span<const float> x, SquareSum& sum);

// AddSquaresToEach: sums[i] += x[i]^2, without rounding.
//   x    [n]  in      f32
//   sums [n]  in-out  not carried after it: at most kUncarriedSquares squares may be added to a carried sum before
//   Carry
// NaN and infinity count as a chunk each. Errors: InvalidArgument if the sizes differ.
void AddSquaresToEach(std::span<const float> x, std::span<SquareSum> sums);
inline constexpr int64_t kUncarriedSquares = int64_t{1} << 20;

// CountNotFinite: as AddSquares, but of the chunks with NaN and with infinity alone; the digits of the sum stay.
void CountNotFinite(int64_t first, std::span<const float> x, SquareSum& sum);

}  // namespace plumbline::kernels
