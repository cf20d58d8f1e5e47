// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/loss_scale_check.h"

#include <algorithm>

#include "conformance/oracle/number_text.h"
#include "conformance/oracle/same_number.h"

namespace plumbline::conformance {
namespace {

using reports::CheckOutcome;

constexpr double kLargestScale = 0x1p126;

}  // namespace

contract::LossScaler NextLossScaler(const contract::DynamicLossScale& settings, contract::LossScaler before,
                                    bool skipped) {
  contract::LossScaler after = before;
  after.steps = before.steps + 1;
  if (skipped) {
    after.last_overflow = before.steps;
    const bool halves = settings.hysteresis == 1 || before.hysteresis == 1;
    if (halves) after.scale = std::max(before.scale / 2, static_cast<double>(settings.min_scale));
    if (!halves) after.hysteresis = before.hysteresis - 1;
    return after;
  }
  const bool ends_window = (before.steps - before.last_overflow) % settings.window == 0;
  if (ends_window) after.scale = std::min(2 * before.scale, kLargestScale);
  if (ends_window || settings.consecutive_hysteresis) after.hysteresis = settings.hysteresis;
  return after;
}

std::string ScalerText(const contract::LossScaler& scaler) {
  return "[" + TraceText(scaler.scale) + ", " + std::to_string(scaler.steps) + ", " +
         std::to_string(scaler.last_overflow) + ", " + std::to_string(scaler.hysteresis) + "]";
}

RealResult CheckLossScale(const contract::DynamicLossScale& settings, const contract::LossScaler& before,
                          const RunDigest& run) {
  RealResult result{{"scale", CheckOutcome::kPass, 0, ""}, std::nullopt};
  contract::LossScaler last = before;
  for (const StepDigest& step : run.steps) {
    const std::optional<contract::LossScaler> seen = step.real ? step.real->loss_scaler : std::nullopt;
    const contract::LossScaler expected = NextLossScaler(settings, last, step.real && step.real->skipped);
    ++result.check.compared;
    if (!SameScaler(seen, expected)) {
      const std::string detail = (seen ? "is " + ScalerText(*seen) : "is not reported") + ", the formula says " +
                                 ScalerText(expected) + " after " + ScalerText(last) +
                                 (step.real && step.real->skipped ? " and a skipped step" : "");
      result.divergence = Divergence{step.step, "loss_scaler", "", 0, detail};
      result.check.outcome = CheckOutcome::kFail;
      result.check.detail = "step " + std::to_string(step.step) + ": loss_scaler " + detail;
      return result;
    }
    last = *seen;
  }
  if (run.steps.empty()) result.check = {"scale", CheckOutcome::kVacuous, 0, "nothing was compared"};
  return result;
}

reports::CheckRecord CheckNothingSkipped(const RunDigest& run) {
  for (const StepDigest& step : run.steps) {
    if (!step.real || !step.real->skipped) continue;
    return {"scale", CheckOutcome::kVacuous, 0,
            "step " + std::to_string(step.step) +
                " was skipped, in a run in which a plain engine skips none with a larger scale: the two do not train "
                "on the same steps"};
  }
  return {"scale", CheckOutcome::kPass, static_cast<int64_t>(run.steps.size()), ""};
}

}  // namespace plumbline::conformance
