// SPDX-License-Identifier: Apache-2.0
// Rotary positions: turns pairs of channels of each head by angles that grow with the position, and back again for
// gradients. The angles are tabulated once; where a table begins is an argument, so that a part of a sequence has the
// angles of its place. Source: Su et al. 2021, eq. 34, with the channels of a pair half a head apart
// (docs/semantics.md, "Family llama", rot).
#pragma once

#include <cstdint>
#include <span>

namespace plumbline::kernels {

// Declared maximum error of a table's entry, absolute: one rounding to float of a number of at most 1, and that of the
// angle in double, whose own error grows with it.
constexpr double RopeTableMaxError(double angle) { return 0x1p-25 + 0x1p-50 * (1 + angle); }

// Declared maximum error of turning, in units of 2^-24 of what the operations name.
inline constexpr double kRopeMaxUnits = 2.5;

// RopeTable: cosine[p, i] = cos(a), sine[p, i] = sin(a),  a = (first_position + p) * theta^(-2 i / head_width).
//   cosine [positions, head_width / 2]  out  f32
//   sine   [positions, head_width / 2]  out  f32
// Units: radians. Computed in double and rounded once: bitwise repeatable; an entry depends on its position alone.
// Max error vs exact: RopeTableMaxError(a).
// Errors: InvalidArgument if a size does not match, first_position < 0, head_width is odd or below 2, or theta <= 0.
// Source: Su et al. 2021, section 3.2.2.
void RopeTable(int64_t first_position, int64_t head_width, double theta, std::span<float> cosine,
               std::span<float> sine);

struct RopeSizes {
  int64_t samples = 0;
  int64_t positions = 0;
  int64_t heads = 0;       // side by side in a token's row
  int64_t head_width = 0;  // even, >= 2
};

// RopeForward: in each head of each token at position p, for i < head_width / 2 and k = i + head_width / 2,
//   (x[i], x[k]) = (x[i] cosine[p, i] - x[k] sine[p, i], x[k] cosine[p, i] + x[i] sine[p, i]).
//   cosine, sine [positions, head_width / 2]                 in      f32
//   x            [samples, positions, heads * head_width]    in-out  T (float, BFloat16 or Float16)  overlaps no table
// Units: none. In float, rounded once: bitwise repeatable, independent of the token's place.
// Max error vs f64 with the given table: kRopeMaxUnits * 2^-24 * (|x[i]| + |x[k]|), each times its factor, plus one
// rounding to T.
// Errors: InvalidArgument if a size is negative or does not match, or head_width is odd or below 2.
// Source: Su et al. 2021, eq. 34.
template <typename T>
void RopeForward(const RopeSizes& sizes, std::span<const float> cosine, std::span<const float> sine, std::span<T> x);

// RopeBackward: the same by the opposite angle: what is the gradient of the turned becomes that of what was turned, for
// a rotation's transpose is its inverse. All else as above.
template <typename T>
void RopeBackward(const RopeSizes& sizes, std::span<const float> cosine, std::span<const float> sine, std::span<T> dx);

}  // namespace plumbline::kernels
