// SPDX-License-Identifier: Apache-2.0
#include "cli/sensitivity_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <tuple>
#include <vector>

namespace plumbline::cli {
namespace {

using reports::CaseRecord;
using reports::CheckOutcome;
using reports::CheckRecord;
using reports::Record;

// What a problem's cases say in a check of one name, and in one storage type where that counts.
struct Line {
  std::string problem;
  std::string check;
  std::string storage;
  std::string detail;
  std::string layout;  // of the case that came nearest to its limit
  std::optional<double> share;
};

std::string AxisOf(const CaseRecord& entry, const char* name) {
  const auto found = entry.axes.find(name);
  return found == entry.axes.end() ? "" : found->second;
}

bool IsOfSensitivity(const std::string& check) {
  constexpr std::string_view kNames[] = {"gradient", "liveness", "amplification", "truth", "bias"};
  return std::find(std::begin(kNames), std::end(kNames), check) != std::end(kNames);
}

Line LineOf(const CaseRecord& entry, const CheckRecord& check) {
  Line line{
      AxisOf(entry, "problem"),  check.name, check.name == "gradient" ? AxisOf(entry, "storage") : "", check.detail, "",
      ShareOfLimit(check.detail)};
  if (line.share) line.layout = entry.id.substr(entry.id.rfind('/') + 1);
  return line;
}

// In the order in which the cases come to them.
std::vector<Line> Lines(const Record& record) {
  std::vector<Line> lines;
  for (const CaseRecord& entry : record.cases) {
    for (const CheckRecord& check : entry.checks) {
      if (check.outcome != CheckOutcome::kPass || !IsOfSensitivity(check.name)) continue;
      Line line = LineOf(entry, check);
      const auto same = [&](const Line& other) {
        return std::tie(other.problem, other.check, other.storage) == std::tie(line.problem, line.check, line.storage);
      };
      const auto known = std::find_if(lines.begin(), lines.end(), same);
      if (known == lines.end()) {
        lines.push_back(std::move(line));
      } else if (line.share > known->share) {
        *known = std::move(line);
      }
    }
  }
  return lines;
}

// What the guards of all passing cases have planted.
std::string Planted(const Record& record) {
  int64_t planted = 0, cases = 0;
  for (const CaseRecord& entry : record.cases) {
    for (const CheckRecord& check : entry.checks) {
      if (check.name != "guard" || check.outcome != CheckOutcome::kPass) continue;
      planted += check.compared;
      ++cases;
    }
  }
  if (cases == 0) return "";
  return fmt::format("  {} changes planted into what was seen of {} case{}: each was noticed\n", planted, cases,
                     cases == 1 ? "" : "s");
}

}  // namespace

std::optional<double> ShareOfLimit(std::string_view detail) {
  constexpr std::string_view kBefore = "nearest to its limit: ", kNumber = ", ", kBehind = " of it";
  const size_t begin = detail.find(kBefore);
  if (begin == std::string_view::npos) return std::nullopt;
  detail.remove_prefix(begin + kBefore.size());
  detail = detail.substr(0, detail.find(kBehind));
  const size_t number = detail.rfind(kNumber);
  if (number == std::string_view::npos) return std::nullopt;
  detail.remove_prefix(number + kNumber.size());
  double share = 0;
  const auto parsed = std::from_chars(detail.data(), detail.data() + detail.size(), share);
  return parsed.ec == std::errc() && parsed.ptr == detail.data() + detail.size() ? std::optional(share) : std::nullopt;
}

std::string SensitivityText(const Record& record) {
  std::string text;
  for (const Line& line : Lines(record)) {
    text += fmt::format("  {:<17}{}{}{}\n", line.problem, line.storage.empty() ? "" : line.storage + ": ", line.detail,
                        line.layout.empty() ? "" : " (case " + line.layout + ")");
  }
  text += Planted(record);
  return text.empty() ? "" : "\nCould these checks have failed?\n" + text;
}

}  // namespace plumbline::cli
