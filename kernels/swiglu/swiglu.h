// SPDX-License-Identifier: Apache-2.0
// The gated activation silu(gate) * up, forward and backward. Elementwise. Source: Shazeer 2020, eq. 6 (SwiGLU, beta =
// 1); docs/semantics.md, "Family llama".
#pragma once

#include <span>

namespace plumbline::kernels {

// Declared maximum errors in units of 2^-24 of what each operation names: those of the logistic function (its
// exponential has 4 of them, and three roundings follow) and of the products.
inline constexpr double kSwigluMaxUnits = 12;
inline constexpr double kSwigluGateMaxUnits = 16;
// What an exponential that underflows adds, times what each operation names.
inline constexpr double kSwigluUnderflow = 0x1p-117;

// SwigluForward: y = gate * s * up,  s = 1 / (1 + e^-gate).
//   gate [n]  in   T (float, BFloat16 or Float16)
//   up   [n]  in   T
//   y    [n]  out  T   may be the same memory as gate or up
// Units: none. Elementwise in float, rounded once: bitwise repeatable, independent of the element's place. NaN gives
// NaN, and so does a gate of minus infinity (infinity times 0 in the formula, as in PyTorch).
// Max error vs f64: kSwigluMaxUnits * 2^-24 * |y| + kSwigluUnderflow * |up|, plus one rounding to T.
// Errors: InvalidArgument if the sizes differ.  Source: Shazeer 2020, eq. 6.
template <typename T>
void SwigluForward(std::span<const T> gate, std::span<const T> up, std::span<T> y);

// SwigluBackward: dgate = dy * up * (s + gate s (1 - s));  dup = dy * gate * s.
//   dy    [n]  in   T (float, BFloat16 or Float16)
//   gate  [n]  in   T   the forward's
//   up    [n]  in   T   the forward's
//   dgate [n]  out  T   may be the same memory as any input
//   dup   [n]  out  T   may be the same memory as any input, not as dgate
// Units: those of dy. Elementwise in float: bitwise repeatable, independent of the element's place. NaN gives NaN; the
// slope of a gate of infinity is 1, of minus infinity 0.
// Max error vs f64: kSwigluGateMaxUnits * 2^-24 * |dy * up| for dgate; kSwigluMaxUnits * 2^-24 * |dup| +
// kSwigluUnderflow * |dy| for dup; plus one rounding to T each.
// Errors: InvalidArgument if the sizes differ.  Source: derivative of the forward.
template <typename T>
void SwigluBackward(std::span<const T> dy, std::span<const T> gate, std::span<const T> up, std::span<T> dgate,
                    std::span<T> dup);

}  // namespace plumbline::kernels
