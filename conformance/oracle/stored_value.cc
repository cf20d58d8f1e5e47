// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/stored_value.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "conformance/contract/dtype.h"
#include "conformance/contract/error.h"

namespace plumbline::conformance {
namespace {

using contract::DType;

// Sign, five bits of exponent, ten of fraction (IEEE 754, binary16).
double Fp16Value(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  double magnitude = std::ldexp(exponent == 0 ? fraction : 1024 + fraction, std::max(exponent, 1) - 25);
  if (exponent == 31) magnitude = fraction == 0 ? HUGE_VAL : NAN;
  return std::copysign(magnitude, (bits & 0x8000) != 0 ? -1 : 1);
}

}  // namespace

uint64_t StoredBits(const contract::HostTensor& tensor, int64_t index) {
  const auto size = static_cast<size_t>(contract::SizeBytes(tensor.dtype));
  uint64_t bits = 0;  // files and this machine are little-endian
  std::memcpy(&bits, tensor.data.data() + static_cast<size_t>(index) * size, size);
  return bits;
}

double StoredValue(const contract::HostTensor& tensor, int64_t index) {
  const uint64_t bits = StoredBits(tensor, index);
  switch (tensor.dtype) {
    case DType::kF64:
      return std::bit_cast<double>(bits);
    case DType::kF32:
      return std::bit_cast<float>(static_cast<uint32_t>(bits));
    case DType::kBF16:
      return std::bit_cast<float>(static_cast<uint32_t>(bits << 16));
    case DType::kF16:
      return Fp16Value(static_cast<uint16_t>(bits));
    case DType::kI64:
      return static_cast<double>(static_cast<int64_t>(bits));
    case DType::kI32:
      return static_cast<int32_t>(static_cast<uint32_t>(bits));
    case DType::kU16:
    case DType::kU8:
      return static_cast<double>(bits);
  }
  contract::Check(false, "a type has values");
  return 0;
}

}  // namespace plumbline::conformance
