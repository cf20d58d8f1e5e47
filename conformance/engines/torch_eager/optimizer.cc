// SPDX-License-Identifier: Apache-2.0
// Which optimizer a config asks for. See optimizer.h.
#include "conformance/engines/torch_eager/optimizer.h"

#include <string>

#include "conformance/contract/error.h"

namespace plumbline::conformance::torch_eager {

// A switch without a default: the compiler names it where it lacks a new kind.
std::unique_ptr<Optimizer> MakeOptimizer(const contract::RunConfig& config, const ParametersOfGroups& parameters) {
  using Kind = contract::OptimizerKind;
  switch (config.optimizer) {
    case Kind::kAdamW:
      return MakeLibraryAdamW(config, parameters);
    case Kind::kAdam:
      return MakeLibraryAdam(config, parameters);
    case Kind::kSgd:
      return MakeLibrarySgd(config, parameters);
    case Kind::kLion:
      return MakeLion(config, parameters);
    case Kind::kLamb:
      return MakeLamb(config, parameters);
    case Kind::kModularMomentum:
    case Kind::kModularSgd:
      break;
  }
  contract::Fail(contract::ErrorCode::kUnsupported, "torch_eager: config.optimizer.type is " +
                                                        std::string(Name(config.optimizer)) +
                                                        "; allowed in the real families: AdamW, SGD, Adam, Lion, Lamb");
}

}  // namespace plumbline::conformance::torch_eager
