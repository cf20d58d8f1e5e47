// SPDX-License-Identifier: Apache-2.0
// A backend whose allocations have guards around them (memory_guards.h). What is handed out has the size, the alignment
// and the poison of the inner backend's; the inner one is asked for 2 * kGuardBytes more. Memory that the inner backend
// takes for itself has none.
#pragma once

#include <memory>

#include "optimized/backend/backend.h"
#include "optimized/backend/memory_guards.h"

namespace plumbline::optimized {

// `guards` outlives the backend and everything that it has allocated.
std::unique_ptr<Backend> MakeGuardedBackend(std::unique_ptr<Backend> inner, MemoryGuards& guards);

}  // namespace plumbline::optimized
