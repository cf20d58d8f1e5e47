// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/step_sight.h"

namespace plumbline::conformance {

SightResult SeeStep(const contract::Case&, const std::filesystem::path&, int64_t) {
  return {{"dump", reports::CheckOutcome::kFail, 0, "reading dumps is not built yet"}, std::nullopt};
}

}  // namespace plumbline::conformance
