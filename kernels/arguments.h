// SPDX-License-Identifier: Apache-2.0
// The one way in which kernels refuse arguments. Kernels validate sizes and bounds, never values of elements.
#pragma once

#include <string>
#include <string_view>

#include "conformance/contract/error.h"

namespace plumbline::kernels {

// Throws InvalidArgument "OPERATION: RULE" unless `ok`.
inline void Require(bool ok, std::string_view operation, std::string_view rule) {
  if (!ok) {
    contract::Fail(contract::ErrorCode::kInvalidArgument, std::string(operation) + ": " + std::string(rule));
  }
}

}  // namespace plumbline::kernels
