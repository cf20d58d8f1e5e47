// SPDX-License-Identifier: Apache-2.0
// Real-valued inputs from a fixed seed, the acceptance of a result within a bound, and the check that an elementwise
// operation does not see where its elements lie. No oracle lives here.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/bf16.h"
#include "kernels/fp16.h"
#include "kernels/testing/sizes.h"

namespace plumbline::kernels::testing {

class Reals {
 public:
  explicit Reals(uint64_t stream = 0) : integers_(stream) {}

  // Uniform in [low, high], rounded to T, so that the kernel and the oracle see the same value.
  template <typename T>
  double In(double low, double high) {
    const double share = static_cast<double>(integers_.In(0, (int64_t{1} << 40) - 1)) * 0x1p-40;
    return ToFloat(FromFloat<T>(static_cast<float>(low + (high - low) * share)));
  }
  template <typename T>
  std::vector<double> Vector(int64_t size, double low, double high) {
    std::vector<double> values(size);
    for (double& value : values) value = In<T>(low, high);
    return values;
  }

 private:
  Integers integers_;
};

// Positive form: NaN passes only where NaN is due, infinity where the same infinity is due.
inline bool Within(double actual, double expected, double bound) {
  if (std::isnan(expected)) return std::isnan(actual);
  if (std::isinf(expected)) return actual == expected;
  return std::abs(actual - expected) <= bound;
}

// Half a unit of storage type T at a value: what one rounding to T adds where it does not make infinity of it. Where T
// is subnormal it is half of T's smallest number, or more.
template <typename T>
double Rounding(double value) {
  return kUnitRoundoff<T> * std::abs(value) + 0x1p-133;
}
template <>
inline double Rounding<Float16>(double value) {
  return std::max(kUnitRoundoff<Float16> * std::abs(value), 0x1p-25);
}

// Results in Float16 of which some are beyond its range and some subnormal: the test that checks them must see both.
class Float16Extremes {
 public:
  // Within, where a number of 65520 and above is due as infinity; so near to 65520 that `bound` decides, either will
  // do.
  bool Takes(double actual, double expected, double bound) {
    const double size = std::abs(expected);
    saw_subnormal_ = saw_subnormal_ || (actual != 0 && std::abs(actual) < 0x1p-14);
    if (!std::isinf(actual))
      return size - bound < 65520 && Within(actual, expected, bound + Rounding<Float16>(expected));
    saw_infinity_ = true;
    return size + bound >= 65520 && std::signbit(actual) == std::signbit(expected);
  }
  bool SawInfinity() const { return saw_infinity_; }
  bool SawSubnormal() const { return saw_subnormal_; }
  bool SawBoth() const { return saw_infinity_ && saw_subnormal_; }

 private:
  bool saw_infinity_ = false;
  bool saw_subnormal_ = false;
};

// Values over all magnitudes, zeros, subnormals, the largest numbers, infinities and NaN.
template <typename T>
std::vector<double> SpecialValues() {
  const std::vector<float> values = {0.0f,    -0.0f,  1.0f,    -1.0f,    1e-3f,   -1e-3f, 1e-20f,   -1e-20f,   1e-30f,
                                     -1e-30f, 1e-38f, -1e-38f, 1e-40f,   -1e-40f, 1e4f,   -1e4f,    1e15f,     -1e15f,
                                     1e25f,   -1e25f, 3.3e38f, -3.3e38f, 5.5f,    -5.5f,  INFINITY, -INFINITY, NAN};
  std::vector<double> rounded;
  for (const float value : values) rounded.push_back(ToFloat(FromFloat<T>(value)));
  return rounded;
}

// All NaN are the same.
inline bool SameBits(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b) || (std::isnan(a) && std::isnan(b));
}

// run(begin, size, offset) returns an elementwise operation's results on elements [begin, begin + size) of one input,
// computed at `offset` from the beginning of an allocation. True if every element has the same bits in all placements.
template <typename Run>
bool ResultsAreIndependentOfPlacement(Run run) {
  constexpr int64_t kWhole = 300;
  const std::vector<double> whole = run(0, kWhole, 0);
  bool is_independent = true;
  ForEachPlacement([&](int64_t size, int64_t offset) {
    const int64_t begin = (size * 7 + offset * 5) % (kWhole - size);
    const std::vector<double> part = run(begin, size, offset);
    for (int64_t i = 0; i < size; ++i) is_independent = is_independent && SameBits(part[i], whole[begin + i]);
  });
  return is_independent;
}

}  // namespace plumbline::kernels::testing
