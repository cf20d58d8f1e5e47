// SPDX-License-Identifier: Apache-2.0
// See integrality.h. Written as "accept if", so that NaN never passes.
#include "optimized/engine/integrality.h"

#include <cmath>
#include <cstddef>

#include "conformance/contract/error.h"

namespace plumbline::optimized {
namespace {

constexpr float kLargest = 16777216.0f;

// The range comes first: a conversion of NaN or of a larger value to int32 would be undefined.
bool IsIntegral(float value) {
  if (!(std::fabs(value) <= kLargest)) return false;
  return static_cast<float>(static_cast<int32_t>(value)) == value;
}

}  // namespace

void CheckIntegral(std::span<const float> gradient, const GradientOrigin& origin) {
  for (size_t i = 0; i < gradient.size(); ++i) {
    if (IsIntegral(gradient[i])) continue;
    contract::Fail(contract::ErrorCode::kInternal,
                   "gradient of " + origin.tensor + "[" + std::to_string(origin.begin + static_cast<int64_t>(i)) +
                       "] is " + std::to_string(gradient[i]) + ", not an integer of at most 2^24, in step " +
                       std::to_string(origin.step) + " on rank " + std::to_string(origin.rank));
  }
}

}  // namespace plumbline::optimized
