// SPDX-License-Identifier: Apache-2.0
// Which sizes and offsets the tests of elementwise kernels visit, memory that shows writes outside of it, and integer
// inputs from a fixed seed. No oracle lives here.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "kernels/bf16.h"
#include "kernels/fp16.h"

namespace plumbline::kernels::testing {

// 0, 1, odd, prime, and one below and above the widths at which vectorised loops change (4, 8, 16, 32, 64).
inline constexpr int64_t kSizes[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 97, 127, 211};
inline constexpr int64_t kNumOffsets = 17;

// Calls test(size, offset) for each size at each offset from the beginning of an allocation.
template <typename Test>
void ForEachPlacement(Test test) {
  for (const int64_t size : kSizes) {
    for (int64_t offset = 0; offset < kNumOffsets; ++offset) test(size, offset);
  }
}

// `size` elements at `offset`, between bytes whose change shows a write outside.
template <typename T>
class Guarded {
 public:
  Guarded(int64_t size, int64_t offset) : memory_(offset + size + kGuardElems), offset_(offset), size_(size) {
    std::memset(static_cast<void*>(memory_.data()), kGuardByte, memory_.size() * sizeof(T));
  }
  Guarded(const std::vector<double>& values, int64_t offset) : Guarded(static_cast<int64_t>(values.size()), offset) {
    for (size_t i = 0; i < values.size(); ++i) span()[i] = FromFloat<T>(static_cast<float>(values[i]));
  }

  std::span<T> span() { return {memory_.data() + offset_, static_cast<size_t>(size_)}; }
  std::span<const T> view() const { return {memory_.data() + offset_, static_cast<size_t>(size_)}; }

  std::vector<double> Values() const {
    std::vector<double> values;
    for (const T value : view()) values.push_back(ToFloat(value));
    return values;
  }

  bool GuardsAreIntact() const {
    const auto* bytes = reinterpret_cast<const unsigned char*>(memory_.data());
    const size_t begin = offset_ * sizeof(T);
    const size_t end = (offset_ + size_) * sizeof(T);
    for (size_t i = 0; i < memory_.size() * sizeof(T); ++i) {
      if ((i < begin || i >= end) && bytes[i] != kGuardByte) return false;
    }
    return true;
  }

 private:
  static constexpr int64_t kGuardElems = 16;
  static constexpr unsigned char kGuardByte = 0x5A;
  std::vector<T> memory_;
  int64_t offset_;
  int64_t size_;
};

inline constexpr uint64_t kSeed = 20240229;

// Integers in [-bound, bound]; the modulo's bias does not matter here, and std distributions are not portable.
class Integers {
 public:
  explicit Integers(uint64_t stream = 0) : engine_(kSeed + stream) {}

  int64_t In(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine_() % static_cast<uint64_t>(high - low + 1));
  }
  std::vector<double> Vector(int64_t size, int64_t low, int64_t high) {
    std::vector<double> values(size);
    for (double& value : values) value = static_cast<double>(In(low, high));
    return values;
  }

 private:
  std::mt19937_64 engine_;
};

// Largest integer up to which every integer is a T.
template <typename T>
inline constexpr int64_t kExactLimit = int64_t{1} << 24;
template <>
inline constexpr int64_t kExactLimit<BFloat16> = int64_t{1} << 8;
template <>
inline constexpr int64_t kExactLimit<Float16> = int64_t{1} << 11;

}  // namespace plumbline::kernels::testing
