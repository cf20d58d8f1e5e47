// SPDX-License-Identifier: Apache-2.0
// Numbers that comparisons get wrong, for tests of them.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace plumbline::conformance {

inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kOtherNaN = std::bit_cast<double>(std::bit_cast<uint64_t>(-kNaN) + 1);  // sign and payload
inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kSubnormal = 0x1p-149;  // the smallest fp32: a kernel may flush it to 0
inline constexpr double kNotFinite[] = {kNaN, kOtherNaN, kInf, -kInf};

}  // namespace plumbline::conformance
