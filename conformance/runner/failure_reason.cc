// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/failure_reason.h"

#include <algorithm>
#include <cctype>
#include <sstream>

namespace plumbline::conformance {
namespace {

using reports::CheckOutcome;
using reports::CheckRecord;
using reports::Verdict;

constexpr const char* kEngine = "engine";

// The failed check that the message is of (judge.cc says which leads).
const CheckRecord* LeadingCheck(const Judgement& judgement) {
  for (const CheckRecord& check : judgement.checks) {
    if (check.outcome != CheckOutcome::kFail) continue;
    if (judgement.message == check.detail || judgement.message == check.name + ": " + check.detail) return &check;
  }
  return nullptr;
}

// Words of letters alone: numbers, names of tensors ("embed.weight[3]") and values that are not finite differ between
// sizes.
std::string WithoutNumbers(const std::string& message) {
  std::istringstream words(message);
  std::string kept, word;
  while (words >> word) {
    while (!word.empty() && std::ispunct(static_cast<unsigned char>(word.back()))) word.pop_back();
    while (!word.empty() && std::ispunct(static_cast<unsigned char>(word.front()))) word.erase(0, 1);
    const bool letters = std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isalpha(c) != 0; });
    if (!letters || word.empty() || word == "nan" || word == "inf") continue;
    kept += (kept.empty() ? "" : " ") + word;
  }
  return kept;
}

bool CertificateHolds(const Judgement& judgement) {
  return std::none_of(judgement.checks.begin(), judgement.checks.end(), [](const CheckRecord& check) {
    return check.name == "certificate" && check.outcome != CheckOutcome::kPass;
  });
}

bool Has(const contract::ModelSpec& model, const std::string& tensor) {
  const std::vector<contract::ParameterSpec> parameters = contract::Parameters(model);
  return std::any_of(parameters.begin(), parameters.end(),
                     [&](const contract::ParameterSpec& parameter) { return parameter.name == tensor; });
}

}  // namespace

std::optional<FailureReason> ReasonOf(const Judgement& judgement) {
  if (judgement.verdict == Verdict::kError && judgement.engine_failed) {
    return FailureReason{kEngine, "", WithoutNumbers(judgement.message)};
  }
  if (judgement.verdict != Verdict::kFail) return std::nullopt;
  const CheckRecord* check = LeadingCheck(judgement);
  if (!check) return std::nullopt;
  return FailureReason{check->name, judgement.divergence ? judgement.divergence->tensor : "", ""};
}

bool FailsFor(const FailureReason& reason, const contract::ModelSpec& model, const Judgement& judgement) {
  const std::optional<FailureReason> seen = ReasonOf(judgement);
  if (!seen || seen->check != reason.check || seen->error != reason.error) return false;
  if (reason.check == "exact" && !CertificateHolds(judgement)) return false;
  return seen->tensor == reason.tensor || (!reason.tensor.empty() && !Has(model, reason.tensor));
}

}  // namespace plumbline::conformance
