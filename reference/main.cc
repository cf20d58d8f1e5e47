// SPDX-License-Identifier: Apache-2.0
// The program `reference_engine`: docs/formats.md, "An engine is a program". Everything is in reference/engine.
#include "conformance/contract/engine_protocol.h"
#include "reference/engine/run_case.h"

int main(int argc, char** argv) {
  return plumbline::contract::EngineMain(argc, argv, plumbline::reference::Description(),
                                         plumbline::reference::RunCase);
}
