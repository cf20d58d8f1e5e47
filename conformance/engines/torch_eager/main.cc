// SPDX-License-Identifier: Apache-2.0
// The program `torch_eager`: the plain LibTorch witness, behind the engine protocol of docs/formats.md.
#include "conformance/contract/engine_protocol.h"
#include "conformance/engines/torch_eager/run_case.h"

int main(int argc, char** argv) {
  namespace torch_eager = plumbline::conformance::torch_eager;
  return plumbline::contract::EngineMain(argc, argv, torch_eager::Describe(), torch_eager::RunCase);
}
