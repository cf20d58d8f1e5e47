// SPDX-License-Identifier: Apache-2.0
#include "cli/diagnosis_totals.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <regex>
#include <vector>

namespace plumbline::cli {
namespace {

using reports::DefectRecord;
using reports::DivergenceRecord;
using reports::HypothesisRecord;

// Every match of the pattern's first group.
std::vector<std::string> Named(const std::string& text, const char* pattern) {
  std::vector<std::string> names;
  const std::regex regex(pattern);
  for (std::sregex_iterator match(text.begin(), text.end(), regex), end; match != end; ++match) {
    names.push_back((*match)[1]);
  }
  return names;
}

// Step and rank of the edit's text may be alternatives: "step 1 or 2".
std::vector<std::string> NamedNumbers(const std::string& text, const std::string& word) {
  std::vector<std::string> numbers = Named(text, ("\\b" + word + " ([0-9]+)").c_str());
  for (std::string& more : Named(text, ("\\b" + word + " [0-9]+ or ([0-9]+)").c_str()))
    numbers.push_back(std::move(more));
  return numbers;
}

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

PlaceVerdict JudgePlace(const DefectRecord& defect) {
  const std::vector<std::string> steps = NamedNumbers(defect.expect, "step");
  const std::vector<std::string> ranks = NamedNumbers(defect.expect, "rank");
  const std::vector<std::string> tensors = Named(defect.expect, "\\btensor ([\\w.]*\\w)");
  PlaceVerdict verdict{!steps.empty() || !ranks.empty() || !tensors.empty(), false};
  if (!verdict.named || !defect.divergence) return verdict;
  const DivergenceRecord& seen = *defect.divergence;
  const bool step = steps.empty() || Contains(steps, std::to_string(seen.step));
  const bool tensor = tensors.empty() || Contains(tensors, seen.tensor);
  const bool rank = ranks.empty() || (seen.ranks.size() == 1 && Contains(ranks, std::to_string(seen.ranks.front())));
  verdict.right = step && tensor && rank;
  return verdict;
}

bool FoundHypothesis(const DefectRecord& defect) {
  if (!defect.divergence) return false;
  const auto& hypotheses = defect.divergence->hypotheses;
  if (hypotheses.empty() || !hypotheses.front().fits) return false;
  return std::any_of(hypotheses.begin(), hypotheses.end(), [&](const HypothesisRecord& hypothesis) {
    return hypothesis.name == defect.hypothesis && hypothesis.fits &&
           hypothesis.residual <= hypotheses.front().residual;
  });
}

std::string DiagnosisTotals(const reports::Record& record) {
  if (std::none_of(record.defects.begin(), record.defects.end(),
                   [](const DefectRecord& defect) { return defect.caught; })) {
    return "";
  }
  int64_t named = 0, right = 0, expected = 0, found = 0, silent = 0, num_silent = 0;
  for (const DefectRecord& defect : record.defects) {
    if (!defect.caught) continue;
    const PlaceVerdict place = JudgePlace(defect);
    named += place.named;
    right += place.right;
    const bool fits =
        defect.divergence && !defect.divergence->hypotheses.empty() && defect.divergence->hypotheses.front().fits;
    if (defect.hypothesis.empty()) {
      ++num_silent;
      silent += !fits;
      continue;
    }
    ++expected;
    found += FoundHypothesis(defect);
  }
  return fmt::format(
      "Of those caught: place right in {} of {} whose edit names step, tensor or rank; hypothesis right in {} of {} "
      "whose edit names one; none claimed in {} of the other {}.\n",
      right, named, found, expected, silent, num_silent);
}

}  // namespace plumbline::cli
