// SPDX-License-Identifier: Apache-2.0
// The LAMB update on a slice, in two passes, since the size of the step depends on norms over the whole parameter, of
// which a slice is a part: LambMoments updates both moments and adds what the slice has of the two sums of squares;
// when these are complete, LambStep makes the step. The direction u is made twice, in the same bits, instead of being
// kept: it costs no memory, and no more traffic than writing it and reading it again.
//
//   LambMoments(options, slice.begin, gradient, m, v, master, of_master, of_direction);
//   ... the same for all other slices, all-reduce ...
//   LambStep<T>(options, ratio of the roots of both sums, m, v, master, weight);
//
// Source: You et al. 2020, algorithm 2; docs/semantics.md, "One step".
#pragma once

#include <cstdint>
#include <span>

#include "kernels/sum_of_squares/sum_of_squares.h"

namespace plumbline::kernels {

// Declared maximum error in units of 2^-24 of what the operation names.
inline constexpr double kLambMaxUnits = 14;

struct LambOptions {
  double lr = 1e-3;
  double beta1 = 0.9;     // in [0, 1)
  double beta2 = 0.999;   // in [0, 1)
  double epsilon = 1e-8;  // >= 0
  double weight_decay = 0;
  int64_t t = 1;              // number of this update, from 1
  double gradient_scale = 1;  // of clipping; multiplies every gradient
};

// LambMoments: g = gradient_scale * gradient;  m <- beta1 m + (1 - beta1) g;  v <- beta2 v + (1 - beta2) g^2;
// of_master += sum of p^2;  of_direction += sum of u^2, with
// u = (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon) + weight_decay p.
//   first         [1]  in      index of p[0] in its tensor, a multiple of kSquareSumChunkElems
//   gradient      [n]  in      f32  n is a multiple of kSquareSumChunkElems, or the slice is the tensor's end
//   first_moment  [n]  in-out  f32  m
//   second_moment [n]  in-out  f32  v, >= 0
//   master        [n]  in      f32  p
//   of_master          in-out  carried before and after, as is of_direction
// No two arguments may overlap. Units: none. Elementwise in float (factors of the whole update in double, then rounded
// once), sums as AddSquares makes them: bitwise repeatable, independent of how the tensor is cut into such slices.
// Max error vs f64, where g^2 does not overflow and epsilon >= 1e-12: with k = kLambMaxUnits * 2^-24,
// M = |beta1 m| + |(1 - beta1) g| and D = sqrt(v / (1 - beta2^t)) + epsilon:  k M for m;  k v + 2^-148 for v;
// k U for u, with U = (M / (1 - beta1^t)) / D + |weight_decay p|; AddSquares' for the sums of p and of this u.
// Errors: InvalidArgument if sizes differ, first is no multiple or an option is out of range.
// Source: You et al. 2020, algorithm 2.
void LambMoments(const LambOptions& options, int64_t first, std::span<const float> gradient,
                 std::span<float> first_moment, std::span<float> second_moment, std::span<const float> master,
                 SquareSum& of_master, SquareSum& of_direction);

// LambStep: p <- p - lr ratio u, with u as above of the moments that LambMoments has left;  W = p.
//   first_moment  [n]  in      f32  m
//   second_moment [n]  in      f32  v, >= 0
//   master        [n]  in-out  f32  p
//   weight        [n]  out     T (float, BFloat16 or Float16)  W: p, rounded once
// No two arguments may overlap, but for T = float weight may be the same memory as master.
// Units: none. Elementwise in float (lr ratio in double, then rounded once): bitwise repeatable, independent of the
// element's place. NaN in an input gives NaN in what depends on it. Max error vs f64, with k and D as above, here of
// the given moments:  k (|p| + lr ratio (|m / (1 - beta1^t)| / D + |weight_decay p|)).  Errors: as above. Source: You
// et al. 2020, algorithm 2.
template <typename T>
void LambStep(const LambOptions& options, double ratio, std::span<const float> first_moment,
              std::span<const float> second_moment, std::span<float> master, std::span<T> weight);

}  // namespace plumbline::kernels
