// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/sensitivity_check.h"

#include <algorithm>
#include <cstdio>

#include "conformance/contract/error.h"
#include "conformance/oracle/number_text.h"

namespace plumbline::conformance {
namespace {

using contract::DType;
using reports::CheckOutcome;
using reports::CheckRecord;

// The largest integer up to which every integer is exact in the type, and sums of terms stay exact below.
constexpr double kExactF32 = 16777216;  // 2^24
constexpr double kExactBf16 = 256;      // 2^8
constexpr double kExactF16 = 2048;      // 2^11
constexpr double kLargestF16 = 65504;   // with a loss scale, of gradients that are multiples of it

struct Limit {
  const char* quantity;
  double max;
};

double LargestStored(DType storage, double loss_scale) {
  if (storage == DType::kBF16) return kExactBf16;
  if (storage == DType::kF16) return std::min(kExactF16, kLargestF16 / loss_scale);
  return kExactF32;
}

// The largest gradient up to which accumulating it in the storage type would stay exact, and so would not show.
double LargestHidden(DType storage, double loss_scale) {
  return storage == DType::kF32 || storage == DType::kF64 ? 0 : LargestStored(storage, loss_scale);
}

std::vector<Limit> LimitsOf(DType storage, double loss_scale) {
  return {{"activation_sum", kExactF32 - 1},
          {"gradient_sum", kExactF32 - 1},
          {"stored", LargestStored(storage, loss_scale)},
          {"fold_input", kExactF32 - 1},
          {"gradient", kExactF32},
          {"state", kExactF32}};
}

std::string Number(double value) { return ShortText(value, 10); }

std::string Percent(double share) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.0f %%", 100 * share);
  return text;
}

}  // namespace

CheckRecord CheckCertificate(const contract::Certificate& certificate, DType storage, int64_t loss_scale) {
  const auto scale = static_cast<double>(loss_scale);
  CheckRecord check{"certificate", CheckOutcome::kPass, 0, ""};
  for (const Limit& limit : LimitsOf(storage, scale)) {
    const auto found = certificate.quantities.find(limit.quantity);
    ++check.compared;
    if (found == certificate.quantities.end()) {
      check.outcome = CheckOutcome::kVacuous;
      check.detail = std::string("the reference did not measure ") + limit.quantity;
      return check;
    }
    if (found->second.max <= limit.max) continue;
    check.outcome = CheckOutcome::kVacuous;
    check.detail = std::string(limit.quantity) + " reaches " + Number(found->second.max) + " (" + found->second.where +
                   "); allowed: " + Number(limit.max) + " for " + std::string(Name(storage));
    return check;
  }
  const double largest_gradient = certificate.quantities.at("gradient").max;
  if (const double hidden = LargestHidden(storage, scale); !(largest_gradient > hidden)) {
    check.outcome = CheckOutcome::kVacuous;
    check.detail = "no gradient exceeds " + Number(hidden) + " (the largest is " + Number(largest_gradient) +
                   "), so gradients accumulated in " + std::string(Name(storage)) + " would not show";
    return check;
  }
  const auto& stored = certificate.quantities.at("stored");
  check.detail = "largest stored value " + Number(stored.max) + " (" + stored.where + ")";
  return check;
}

CheckRecord CheckLiveness(const contract::Certificate& certificate) {
  CheckRecord check{"liveness", CheckOutcome::kPass, 0, ""};
  double least_nonzero = 1;
  double least_moving = 1;
  for (const contract::Certificate::Liveness& entry : certificate.liveness) {
    check.compared += 2;
    least_nonzero = std::min(least_nonzero, entry.nonzero_gradient_share);
    least_moving = std::min(least_moving, entry.moving_weight_share);
    if (entry.nonzero_gradient_share >= kMinLiveShare && entry.moving_weight_share >= kMinLiveShare) continue;
    check.outcome = CheckOutcome::kVacuous;
    check.detail = entry.tensor + ": " + Percent(entry.nonzero_gradient_share) + " of gradients are not zero and " +
                   Percent(entry.moving_weight_share) + " of weights move; at least " + Percent(kMinLiveShare) +
                   " of each is needed";
    return check;
  }
  if (check.compared == 0) {
    check.outcome = CheckOutcome::kVacuous;
    check.detail = "the reference measured no tensor";
    return check;
  }
  check.detail = "in every tensor at least " + Percent(least_nonzero) + " of gradients are not zero and " +
                 Percent(least_moving) + " of weights move in a step";
  return check;
}

Amplification MeasureAmplification(const std::string& kind, const contract::TensorFile& truth,
                                   const contract::TensorFile& perturbed) {
  Amplification result{kind, 0, 0};
  if (perturbed.tensors.size() != truth.tensors.size()) {
    contract::Fail(contract::ErrorCode::kInvalidArgument,
                   "the dump with one unit in " + kind + " has " + std::to_string(perturbed.tensors.size()) +
                       " tensors; allowed: " + std::to_string(truth.tensors.size()) + ", as the one without");
  }
  for (const contract::HostTensor& tensor : truth.tensors) {
    if (!tensor.name.starts_with("weight/")) continue;
    const contract::HostTensor& other = perturbed.Find(tensor.name);
    if (other.shape != tensor.shape) {
      contract::Fail(contract::ErrorCode::kInvalidArgument,
                     tensor.name + " with one unit in " + kind + " has another shape than without");
    }
    const std::vector<int64_t> expected = contract::ToInt64(tensor);
    const std::vector<int64_t> found = contract::ToInt64(other);
    result.total += static_cast<int64_t>(expected.size());
    for (size_t i = 0; i < expected.size(); ++i) result.differing += expected[i] != found[i];
  }
  return result;
}

CheckRecord CheckAmplification(const std::vector<Amplification>& measured, int64_t steps) {
  CheckRecord check{"amplification", CheckOutcome::kPass, 0, ""};
  for (const Amplification& entry : measured) {
    check.compared += entry.total;
    check.detail += (check.detail.empty() ? "" : ", ") + entry.kind + " " + Percent(entry.share());
    if (!(entry.share() >= kMinAmplification)) check.outcome = CheckOutcome::kVacuous;
  }
  check.detail = "one unit added changes, " + std::to_string(steps) + " steps later, of all weights: " + check.detail;
  if (measured.empty() || check.compared == 0 || steps < kMinAmplifyingSteps) check.outcome = CheckOutcome::kVacuous;
  if (check.outcome == CheckOutcome::kVacuous) {
    check.detail += "; at least " + Percent(kMinAmplification) + " after at least " +
                    std::to_string(kMinAmplifyingSteps) + " steps is needed";
  }
  return check;
}

}  // namespace plumbline::conformance
