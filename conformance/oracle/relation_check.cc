// SPDX-License-Identifier: Apache-2.0
// CompareBitwise: two runs of one engine that must be equal in every bit of every digest and in every number of the
// trace.
#include <algorithm>

#include "conformance/oracle/number_text.h"
#include "conformance/oracle/real_check.h"
#include "conformance/oracle/same_number.h"

namespace plumbline::conformance {
namespace {

using contract::TensorKind;
using reports::CheckOutcome;

// Compares one step; the first difference in the order in which a step computes.
class StepComparison {
 public:
  StepComparison(const std::vector<contract::ParameterSpec>& parameters, int64_t step, int64_t& compared)
      : parameters_(parameters), step_(step), compared_(compared) {}

  std::optional<Divergence> Run(const StepDigest& expected, const StepDigest& seen) {
    Demand(expected.step == seen.step, "step", std::to_string(seen.step), std::to_string(expected.step));
    Demand(expected.tokens == seen.tokens, "tokens", std::to_string(seen.tokens), std::to_string(expected.tokens));
    Demand(SameNumber(expected.loss, seen.loss), "loss", TraceText(seen.loss), TraceText(expected.loss));
    for (const RankScalars& other : seen.other_scalars) {
      Demand(false, "replicas", "divided: rank " + std::to_string(other.rank) + " states other numbers than rank 0",
             "one state of all ranks");
    }
    CompareTensors(TensorKind::kGradient, expected, seen);
    CompareReal(expected.real, seen.real);
    for (TensorKind kind : contract::kTensorKinds) {
      if (kind != TensorKind::kGradient) CompareTensors(kind, expected, seen);
    }
    return first_;
  }

 private:
  void Demand(bool same, const std::string& quantity, const std::string& seen, const std::string& expected) {
    ++compared_;
    if (!same && !first_) first_ = Divergence{step_, quantity, "", 0, "is " + seen + ", expected " + expected};
  }

  void CompareReal(const std::optional<contract::RealStep>& expected, const std::optional<contract::RealStep>& seen) {
    Demand(expected.has_value() == seen.has_value(), "lr", seen ? "reported" : "not reported",
           expected ? "a report" : "none");
    if (!expected || !seen) return;
    Demand(SameNumber(expected->gradient_norm, seen->gradient_norm), "gradient_norm", TraceText(seen->gradient_norm),
           TraceText(expected->gradient_norm));
    Demand(SameHistory(expected->norm_history, seen->norm_history), "norm_history", History(seen->norm_history),
           History(expected->norm_history));
    Demand(SameScaler(expected->loss_scaler, seen->loss_scaler), "loss_scaler", LossScalerText(seen->loss_scaler),
           LossScalerText(expected->loss_scaler));
    Demand(expected->skipped == seen->skipped, "skipped", seen->skipped ? "true" : "false",
           expected->skipped ? "true" : "false");
    Demand(std::ranges::equal(expected->lr, seen->lr, SameNumber), "lr", Lrs(seen->lr), Lrs(expected->lr));
  }

  static std::string LossScalerText(const std::optional<contract::LossScaler>& scaler) {
    if (!scaler) return "none";
    return "[" + TraceText(scaler->scale) + ", " + std::to_string(scaler->steps) + ", " +
           std::to_string(scaler->last_overflow) + ", " + std::to_string(scaler->hysteresis) + "]";
  }

  static std::string History(const std::optional<contract::NormHistory>& history) {
    if (!history) return "none";
    return "[" + std::to_string(history->count) + ", " + TraceText(history->mean) + ", " +
           TraceText(history->variance) + "]";
  }

  static std::string Lrs(const std::vector<double>& lrs) {
    std::string text;
    for (double lr : lrs) text += (text.empty() ? "" : ", ") + TraceText(lr);
    return "[" + text + "]";
  }

  void CompareTensors(TensorKind kind, const StepDigest& expected, const StepDigest& seen) {
    const auto& left = expected.tensors[static_cast<int>(kind)];
    const auto& right = seen.tensors[static_cast<int>(kind)];
    const std::string name(contract::Name(kind));
    if (left.size() != right.size()) {
      Demand(false, name, std::to_string(right.size()) + " tensors", std::to_string(left.size()));
      return;
    }
    std::optional<Divergence> found;
    for (size_t i = 0; i < left.size(); ++i) {
      // A frozen parameter has an empty digest in both.
      ++compared_;
      const auto other = std::find_if(seen.other_digests.begin(), seen.other_digests.end(),
                                      [&](const RankDigest& held) { return held.kind == kind && held.tensor == i; });
      if (left[i] == right[i] && other == seen.other_digests.end()) continue;
      // Backward comes to the last parameter first, so of gradients the last is the nearest to the cause.
      if (!found || kind == TensorKind::kGradient) {
        const bool one_rank = left[i] == right[i];
        found = Divergence{step_, name, parameters_[i].name, found ? found->num_tensors : 0,
                           "differs in bits" + (one_rank ? " on rank " + std::to_string(other->rank) : "")};
      }
      ++found->num_tensors;
    }
    if (!first_) first_ = found;
  }

  const std::vector<contract::ParameterSpec>& parameters_;
  const int64_t step_;
  int64_t& compared_;
  std::optional<Divergence> first_;
};

std::string Describe(const std::string& name, const Divergence& divergence) {
  std::string text = name + ": step " + std::to_string(divergence.step) + ": " + divergence.quantity;
  if (!divergence.tensor.empty()) text += " of " + divergence.tensor;
  text += " " + divergence.detail;
  if (divergence.num_tensors > 1) text += "; in " + std::to_string(divergence.num_tensors) + " tensors";
  return text;
}

}  // namespace

RealResult CompareBitwise(const std::string& name, const contract::ModelSpec& model, const RunDigest& expected,
                          const RunDigest& seen) {
  RealResult result{{"relation", CheckOutcome::kPass, 0, name}, std::nullopt};
  if (expected.steps.size() != seen.steps.size()) {
    result.check.outcome = CheckOutcome::kFail;
    result.check.detail =
        name + ": " + std::to_string(seen.steps.size()) + " steps for " + std::to_string(expected.steps.size());
    return result;
  }
  const std::vector<contract::ParameterSpec> parameters = contract::Parameters(model);
  for (size_t i = 0; i < expected.steps.size() && !result.divergence; ++i) {
    StepComparison comparison(parameters, seen.steps[i].step, result.check.compared);
    result.divergence = comparison.Run(expected.steps[i], seen.steps[i]);
  }
  if (result.divergence) {
    result.check.outcome = CheckOutcome::kFail;
    result.check.detail = Describe(name, *result.divergence);
  } else if (result.check.compared == 0) {
    result.check.outcome = CheckOutcome::kVacuous;
    result.check.detail = name + ": nothing was compared";
  }
  return result;
}

}  // namespace plumbline::conformance
