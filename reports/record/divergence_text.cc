// SPDX-License-Identifier: Apache-2.0
// See divergence_text.h.
#include "reports/record/divergence_text.h"

#include <algorithm>
#include <cstdio>
#include <vector>

namespace plumbline::reports {
namespace {

// A hypothesis that explains less than half of the divergence leads nobody; the record keeps it.
constexpr double kMostShown = 0.5;

// Two digits.
std::string Text(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2g", number);
  return text;
}

std::string Ranks(const std::vector<int64_t>& ranks) {
  std::string text = ranks.size() > 1 ? "ranks " : "rank ";
  for (size_t i = 0; i < ranks.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(ranks[i]);
  return text;
}

std::string Where(const DivergenceRecord& divergence) {
  std::string text = divergence.step >= 0 ? "step " + std::to_string(divergence.step) : "";
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (!divergence.quantity.empty() && divergence.quantity != "engine") {  // which has stopped, and has no values
    add(divergence.tensor.empty() ? divergence.quantity : divergence.quantity + " of " + divergence.tensor);
  } else if (!divergence.tensor.empty()) {
    add(divergence.tensor);
  }
  if (divergence.layer >= 0) add("layer " + std::to_string(divergence.layer));
  if (!divergence.ranks.empty()) add(Ranks(divergence.ranks));
  if (!divergence.region.empty()) add(divergence.region);
  return text;
}

}  // namespace

std::string DivergenceText(const std::optional<DivergenceRecord>& divergence, const std::string& indent) {
  if (!divergence) return "";
  std::string text;
  const std::string where = Where(*divergence);
  if (!where.empty()) text += indent + "first divergence: " + where + "\n";
  if (!divergence->undiagnosed.empty()) {
    return text + indent + "no hypothesis was tested: " + divergence->undiagnosed + "\n";
  }
  const std::vector<HypothesisRecord>& hypotheses = divergence->hypotheses;
  if (std::none_of(hypotheses.begin(), hypotheses.end(), [](const HypothesisRecord& h) { return h.fits; })) {
    text += indent + "none of the hypotheses fits (limit of the residual " + Text(divergence->residual_limit) + ")\n";
  }
  for (const HypothesisRecord& hypothesis : hypotheses) {
    if (!hypothesis.fits && hypothesis.residual > kMostShown) continue;
    text += indent + (hypothesis.fits ? "fits:    " : "nearest: ") + hypothesis.name + " (residual " +
            Text(hypothesis.residual) + "): " + hypothesis.says + "\n";
  }
  return text;
}

}  // namespace plumbline::reports
