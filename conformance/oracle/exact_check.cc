// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/exact_check.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace plumbline::conformance {
namespace {

using contract::Digest;
using contract::TensorKind;
using reports::CheckOutcome;

std::string Pair(const std::string& what, const std::string& found, const std::string& expected) {
  return what + " " + found + ", reference " + expected;
}

// The first field that differs, sums before the hash: a reader can compute them by hand.
std::string Detail(const Digest& truth, const Digest& candidate) {
  const auto pair = [](const char* what, auto found, auto expected) {
    return Pair(what, std::to_string(found), std::to_string(expected));
  };
  if (truth.sum != candidate.sum) return pair("sum", candidate.sum, truth.sum);
  if (truth.sum_squares != candidate.sum_squares) {
    return pair("sum of squares", candidate.sum_squares, truth.sum_squares);
  }
  if (truth.sum_indexed != candidate.sum_indexed) {
    return pair("sum_indexed", candidate.sum_indexed, truth.sum_indexed);
  }
  return "hash differs, and no sum does or is kept";
}

Divergence Scalar(int64_t step, const char* quantity, double truth, double candidate) {
  return {step, quantity, "", 0, Pair(quantity, std::to_string(candidate), std::to_string(truth))};
}

// What a rank holds otherwise than the first one does, which may be the right one: or nothing.
const RankDigest* OtherDigest(const StepDigest& step, TensorKind kind, size_t tensor) {
  for (const RankDigest& other : step.other_digests) {
    if (other.kind == kind && other.tensor == tensor) return &other;
  }
  return nullptr;
}

// Tensors of one kind and step; adds to `compared`.
std::optional<Divergence> CompareTensors(const std::vector<contract::ParameterSpec>& parameters, int64_t step,
                                         TensorKind kind, const StepDigest& truth, const StepDigest& candidate,
                                         int64_t& compared) {
  const std::vector<Digest>& expected = truth.tensors[static_cast<int>(kind)];
  const std::vector<Digest>& found = candidate.tensors[static_cast<int>(kind)];
  if (expected.size() != found.size()) {
    return Divergence{step, std::string(Name(kind)), "", 0,
                      std::to_string(found.size()) + " tensors for " + std::to_string(expected.size())};
  }
  std::optional<Divergence> first;
  for (size_t i = 0; i < expected.size(); ++i) {
    ++compared;
    const RankDigest* other = OtherDigest(candidate, kind, i);
    if (expected[i] == found[i] && !other) continue;
    // Backward runs from the last parameter to the first, so the last gradient in canonical order is the nearest to the
    // cause.
    if (!first || kind == TensorKind::kGradient) {
      const int64_t before = first ? first->num_tensors : 0;
      const std::string detail =
          expected[i] == found[i] ? "on rank " + std::to_string(other->rank) + " " + Detail(expected[i], other->digest)
                                  : Detail(expected[i], found[i]);
      first = Divergence{step, std::string(Name(kind)), parameters[i].name, before, detail};
    }
    ++first->num_tensors;
  }
  return first;
}

// As numbers, since a loss is an integer in any notation. What is not finite is no truth, whoever agrees.
bool SameLoss(double truth, double seen) { return std::isfinite(truth) && truth == seen; }

// The loss and the token count of all ranks.
std::optional<Divergence> CompareScalars(const StepDigest& truth, const StepDigest& candidate) {
  const auto tokens = [&](int64_t seen) {
    return Scalar(candidate.step, "tokens", static_cast<double>(truth.tokens), static_cast<double>(seen));
  };
  if (truth.tokens != candidate.tokens) return tokens(candidate.tokens);
  if (!SameLoss(truth.loss, candidate.loss)) return Scalar(candidate.step, "loss", truth.loss, candidate.loss);
  for (const RankScalars& other : candidate.other_scalars) {
    std::optional<Divergence> found;
    if (truth.tokens != other.tokens) {
      found = tokens(other.tokens);
    } else if (!SameLoss(truth.loss, other.loss)) {
      found = Scalar(candidate.step, "loss", truth.loss, other.loss);
    }
    if (!found) continue;
    found->detail += " on rank " + std::to_string(other.rank);
    return found;
  }
  return std::nullopt;
}

std::optional<Divergence> CompareStep(const std::vector<contract::ParameterSpec>& parameters, const StepDigest& truth,
                                      const StepDigest& candidate, int64_t& compared) {
  const int64_t step = candidate.step;
  compared += 2;
  std::optional<Divergence> first = CompareScalars(truth, candidate);
  if (first && first->quantity == "tokens") return first;
  // A wrong loss value does not enter the training; a gradient that differs as well is the better lead, so it is looked
  // at too.
  for (TensorKind kind : contract::kTensorKinds) {
    auto divergence = CompareTensors(parameters, step, kind, truth, candidate, compared);
    if (!divergence) continue;
    divergence->detail += first ? "; " + first->detail : "; the step's loss is equal";
    return divergence;
  }
  return first;
}

std::string Describe(const Divergence& divergence) {
  std::string text = "step " + std::to_string(divergence.step) + ": " + divergence.quantity;
  if (!divergence.tensor.empty()) text += " of " + divergence.tensor;
  text += " differs: " + divergence.detail;
  if (divergence.num_tensors > 1) {
    text += "; " + divergence.quantity + " differs in " + std::to_string(divergence.num_tensors) + " tensors";
  }
  return text;
}

}  // namespace

ExactResult CompareExactly(const contract::ModelSpec& model, const RunDigest& truth, const RunDigest& candidate) {
  const std::vector<contract::ParameterSpec> parameters = contract::Parameters(model);
  ExactResult result;
  result.check.name = "exact";
  if (truth.steps.size() != candidate.steps.size()) {
    result.check.outcome = CheckOutcome::kFail;
    result.check.detail = std::to_string(candidate.steps.size()) + " steps for " + std::to_string(truth.steps.size());
    return result;
  }
  for (size_t step = 0; step < truth.steps.size() && !result.divergence; ++step) {
    result.divergence = CompareStep(parameters, truth.steps[step], candidate.steps[step], result.check.compared);
  }
  if (result.divergence) {
    result.check.outcome = CheckOutcome::kFail;
    result.check.detail = Describe(*result.divergence);
  } else if (result.check.compared == 0) {
    result.check.outcome = CheckOutcome::kVacuous;
    result.check.detail = "nothing was compared";
  }
  return result;
}

}  // namespace plumbline::conformance
