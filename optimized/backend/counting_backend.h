// SPDX-License-Identifier: Apache-2.0
// A backend that keeps books of the memory it hands out, until it is freed. It changes nothing else. Scratch memory
// that the inner backend takes for itself is not in the books.
#pragma once

#include <memory>

#include "optimized/backend/backend.h"
#include "optimized/backend/memory_ledger.h"

namespace plumbline::optimized {

// The ledger outlives the backend and every storage taken from it.
std::unique_ptr<Backend> MakeCountingBackend(std::unique_ptr<Backend> inner, MemoryLedger& ledger);

}  // namespace plumbline::optimized
