// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/metamorphic_guard.h"

#include <cmath>
#include <limits>

namespace plumbline::conformance {
namespace {

using contract::TensorKind;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Runs `check` on copies of `seen`, each with one change.
template <typename Seen, typename Check>
class Planting {
 public:
  Planting(const Seen& seen, const Check& check, Guard& guard) : seen_(seen), check_(check), guard_(guard) {}

  template <typename Change>
  void Plant(const char* name, const Change& change) {
    Seen changed = seen_;
    change(changed);
    guard_.Demand("metamorphic", name, check_(changed).check.outcome);
  }

 private:
  const Seen& seen_;
  const Check& check_;
  Guard& guard_;
};

template <typename Check>
void GuardRuns(const RunDigest& seen, const Check& check, Guard& guard) {
  if (seen.steps.empty()) return;
  Planting<RunDigest, Check> planting(seen, check, guard);
  planting.Plant("one unit of a gradient", [](RunDigest& run) {
    contract::Digest unit;
    unit.Add(0, 1);
    run.steps.back().tensors[static_cast<int>(TensorKind::kGradient)].back() += unit;
  });
  planting.Plant("a loss that is NaN", [](RunDigest& run) { run.steps.back().loss = kNaN; });
  planting.Plant("one token", [](RunDigest& run) { ++run.steps.back().tokens; });
  planting.Plant("a missing step", [](RunDigest& run) { run.steps.pop_back(); });
}

// The element that is largest in magnitude; the checks have seen that it is not zero.
double& LargestElement(StepSight& sight) {
  double* largest = nullptr;
  for (std::vector<double>& tensor : sight.of(TensorKind::kGradient)) {
    for (double& value : tensor) {
      if (!largest || std::abs(value) > std::abs(*largest)) largest = &value;
    }
  }
  return *largest;
}

bool IsEmpty(const StepSight& sight) {
  for (const std::vector<double>& tensor : sight.of(TensorKind::kGradient)) {
    if (!tensor.empty()) return false;
  }
  return true;
}

template <typename Check>
void GuardSteps(const StepSight& seen, const Check& check, Guard& guard) {
  if (IsEmpty(seen)) return;
  Planting<StepSight, Check> planting(seen, check, guard);
  planting.Plant("one element's sign", [](StepSight& sight) {
    double& element = LargestElement(sight);
    element = -element;
  });
  planting.Plant("a gradient that is NaN", [](StepSight& sight) { LargestElement(sight) = kNaN; });
  planting.Plant("half of the loss", [](StepSight& sight) { sight.loss /= 2; });
  planting.Plant("a loss that is NaN", [](StepSight& sight) { sight.loss = kNaN; });
  planting.Plant("one token", [](StepSight& sight) { ++sight.tokens; });
}

}  // namespace

void GuardSameRuns(const std::string& relation, const contract::ModelSpec& model, const RunDigest& whole,
                   const RunDigest& variant, Guard& guard) {
  GuardRuns(
      variant, [&](const RunDigest& seen) { return CheckSameRuns(relation, model, whole, seen); }, guard);
}

void GuardSplitRuns(const contract::ModelSpec& model, const RunDigest& whole, const RunDigest& first,
                    const RunDigest& second, Guard& guard) {
  GuardRuns(
      second, [&](const RunDigest& seen) { return CheckSplitRuns(model, whole, first, seen); }, guard);
}

void GuardNearSteps(const std::string& relation, const contract::ModelSpec& model, int64_t batch,
                    const StepSight& whole, const StepSight& variant, Guard& guard) {
  GuardSteps(
      variant, [&](const StepSight& seen) { return CheckNearSteps(relation, model, batch, whole, seen); }, guard);
}

void GuardSplitSteps(const contract::ModelSpec& model, int64_t batch, const StepSight& whole, const StepSight& first,
                     const StepSight& second, Guard& guard) {
  GuardSteps(
      whole, [&](const StepSight& seen) { return CheckSplitSteps(model, batch, seen, first, second); }, guard);
}

void GuardScaledSteps(const contract::ModelSpec& model, const std::vector<std::vector<int>>& exponents,
                      const StepSight& whole, const StepSight& scaled, Guard& guard) {
  const auto check = [&](const StepSight& seen) { return CheckScaledSteps(model, exponents, whole, seen); };
  GuardSteps(scaled, check, guard);
  if (IsEmpty(scaled)) return;
  Planting<StepSight, decltype(check)>(scaled, check, guard).Plant("one bit of an element", [](StepSight& sight) {
    double& element = LargestElement(sight);
    element = std::nextafter(static_cast<float>(element), std::numeric_limits<float>::infinity());
  });
}

void GuardShiftedSteps(const std::string& relation, const contract::ModelSpec& model, int64_t batch, const Shift& shift,
                       const StepSight& whole, const StepSight& shifted, Guard& guard) {
  GuardSteps(
      shifted, [&](const StepSight& seen) { return CheckShiftedSteps(relation, model, batch, shift, whole, seen); },
      guard);
}

}  // namespace plumbline::conformance
