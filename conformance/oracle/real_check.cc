// SPDX-License-Identifier: Apache-2.0
// First bodies: each check fails and says that it is not built, so that nothing can pass by silence.
#include "conformance/oracle/real_check.h"

namespace plumbline::conformance {
namespace {

RealResult NotBuilt(const char* name) {
  return {{name, reports::CheckOutcome::kFail, 0, "this check is not built yet"}, std::nullopt};
}

}  // namespace

RealResult CheckGradients(const contract::ModelSpec&, const Yardstick&, std::span<const StepSight>) {
  return NotBuilt("gradient");
}
RealResult CheckLosses(const Yardstick&, std::span<const StepSight>) { return NotBuilt("loss"); }
RealResult CheckUpdate(const contract::Case&, const std::vector<contract::RealParameterState>&, int64_t,
                       const StepSight&) {
  return NotBuilt("update");
}
RealResult CheckSkipped(const contract::Case&, const std::vector<contract::RealParameterState>&, const StepSight&) {
  return NotBuilt("skip");
}
RealResult CompareBitwise(const std::string&, const contract::ModelSpec&, const RunDigest&, const RunDigest&) {
  return NotBuilt("relation");
}
RealResult CheckTrajectory(std::span<const double>, std::span<const double>, std::span<const double>,
                           std::span<const double>) {
  return NotBuilt("trajectory");
}

}  // namespace plumbline::conformance
