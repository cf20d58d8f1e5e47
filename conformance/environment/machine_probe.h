// SPDX-License-Identifier: Apache-2.0
// Looks at this machine: reads files, asks the kernel, the compilers and the NVIDIA driver. It judges nothing, changes
// nothing, and never fails: what cannot be read stays empty.
#pragma once

#include <string>

#include "conformance/environment/machine.h"

namespace plumbline::conformance {

// `cache` is the folder of LibTorch and build results; it need not exist. Engines are not asked here.
Machine ProbeMachine(const std::string& cache);

}  // namespace plumbline::conformance
