// SPDX-License-Identifier: Apache-2.0
// Elements of dumped tensors: their bits, and the numbers that they are. Every type that is dumped is exact in fp64.
#pragma once

#include <cstdint>

#include "conformance/contract/tensor_file.h"

namespace plumbline::conformance {

// As an unsigned number of the element's size.
uint64_t StoredBits(const contract::HostTensor& tensor, int64_t index);

// Floats of all types, integers of all types (of I64 the nearest double).
double StoredValue(const contract::HostTensor& tensor, int64_t index);

}  // namespace plumbline::conformance
