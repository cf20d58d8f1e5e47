// SPDX-License-Identifier: Apache-2.0
// The program of the optimized engine as a function, so that other programs (the one with planted defects) can run it.
#pragma once

namespace plumbline::optimized {

// Serves the engine protocol of docs/formats.md and returns the exit code.
int Main(int argc, char** argv);

}  // namespace plumbline::optimized
