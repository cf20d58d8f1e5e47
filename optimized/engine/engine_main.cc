// SPDX-License-Identifier: Apache-2.0
// See main.h.
#include "conformance/contract/engine_protocol.h"
#include "optimized/engine/description.h"
#include "optimized/engine/main.h"
#include "optimized/engine/run_case.h"

namespace plumbline::optimized {

int Main(int argc, char** argv) {
  return contract::EngineMain(argc, argv, Description(RanksAre::kThreads), &RunCase);
}

}  // namespace plumbline::optimized
