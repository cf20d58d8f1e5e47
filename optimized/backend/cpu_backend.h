// SPDX-License-Identifier: Apache-2.0
// The backend on the CPU: oneDNN's matrix products, on one thread (ranks are threads; a rank gets one core).
#pragma once

#include <memory>

#include "optimized/backend/backend.h"

namespace plumbline::optimized {

// To be called, used and destroyed in the rank's own thread.
std::unique_ptr<Backend> MakeCpuBackend();

}  // namespace plumbline::optimized
