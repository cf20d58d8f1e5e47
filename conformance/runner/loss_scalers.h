// SPDX-License-Identifier: Apache-2.0
// The loss scales that runs in fp16 begin with. A case's state says them, whatever the first scale of its config is,
// and an engine that begins with another shows. Pure: no files.
#pragma once

#include <cstddef>
#include <cstdint>

#include "conformance/contract/loss_scale.h"

namespace plumbline::conformance {

// Between these a gradient neither vanishes nor overflows in the problems of the real families; that it does not is
// looked at in each run, with plain engines whose scales are the smallest and twice the largest.
inline constexpr int64_t kSmallestLossScale = 512;
inline constexpr int64_t kLargestLossScale = 8192;

// Of a whole run: it stays between them over twenty steps if the window has five or more, else it begins lower. Never
// below the minimum.
contract::LossScaler FirstLossScaler(const contract::DynamicLossScale& settings);

// Before the i-th of the single steps: all scales from the smallest to the largest, with one overflow left to bear.
// Every other step is the last of a window.
contract::LossScaler StepLossScaler(const contract::DynamicLossScale& settings, size_t i);

// Before a step that must be skipped, with the last overflow left: the scale is halved unless it is the minimum.
contract::LossScaler SkippedLossScaler(const contract::DynamicLossScale& settings);

// With which every step overflows: the gradient of the logits, which fp16 stores, is about this over the number of
// tokens.
contract::LossScaler OverflowingLossScaler(const contract::DynamicLossScale& settings);

}  // namespace plumbline::conformance
