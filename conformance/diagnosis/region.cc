// SPDX-License-Identifier: Apache-2.0
#include "conformance/diagnosis/region.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <vector>

namespace plumbline::conformance {
namespace {

std::string Range(const char* what, int64_t first, int64_t last, int64_t of) {
  std::string text = what + (first == last ? " " + std::to_string(first)
                                           : "s " + std::to_string(first) + " to " + std::to_string(last));
  return text + " of " + std::to_string(of);
}

// "the k part" of columns that lie inside a third of a fused qkv projection, or nothing.
std::string PartOfQkv(const contract::ParameterSpec& parameter, int64_t first_col, int64_t last_col) {
  if (parameter.name.find(".attn.qkv.") == std::string::npos || parameter.cols % 3 != 0) return "";
  const int64_t width = parameter.cols / 3;
  if (first_col / width != last_col / width) return "";
  return std::string(", in the ") + "qkv"[first_col / width] + " part";
}

// Where rows or columns say it in fewer words than elements do: a block of whole rows or of whole columns.
std::string DescribeBlock(const contract::ParameterSpec& parameter, const std::vector<int64_t>& differing) {
  std::set<int64_t> rows, cols;
  for (int64_t i : differing) {
    rows.insert(i / parameter.cols);
    cols.insert(i % parameter.cols);
  }
  const auto is_run = [](const std::set<int64_t>& set) {
    return *set.rbegin() - *set.begin() + 1 == static_cast<int64_t>(set.size());
  };
  const auto num_rows = static_cast<int64_t>(rows.size());
  const auto num_cols = static_cast<int64_t>(cols.size());
  // At least half of the block differs.
  if (2 * static_cast<int64_t>(differing.size()) < num_rows * num_cols) return "";
  if (num_cols < parameter.cols && is_run(cols) && num_rows == parameter.rows) {
    return Range("column", *cols.begin(), *cols.rbegin(), parameter.cols) +
           PartOfQkv(parameter, *cols.begin(), *cols.rbegin());
  }
  if (num_rows < parameter.rows && is_run(rows) && num_cols == parameter.cols) {
    return Range("row", *rows.begin(), *rows.rbegin(), parameter.rows);
  }
  return "";
}

}  // namespace

int64_t LayerOf(std::string_view parameter) {
  constexpr std::string_view kPrefix = "layers.";
  if (parameter.substr(0, kPrefix.size()) != kPrefix) return -1;
  int64_t layer = -1;
  std::from_chars(parameter.data() + kPrefix.size(), parameter.data() + parameter.size(), layer);
  return layer;
}

double DifferenceTolerance(const Values& candidate, const Values& truth, double noise) {
  if (!(noise > 0)) return 0;
  double largest = 0;
  for (size_t i = 0; i < truth.size(); ++i) largest = std::max(largest, std::abs(candidate[i] - truth[i]));
  constexpr double kShareOfLargest = 1e-3;
  const double spread = 4 * noise / std::sqrt(static_cast<double>(truth.size()));
  return std::max(kShareOfLargest * largest, std::min(spread, largest / 2));
}

std::string DescribeRegion(const contract::ParameterSpec& parameter, const Values& candidate, const Values& truth,
                           double tolerance) {
  std::vector<int64_t> differing;
  for (size_t i = 0; i < truth.size(); ++i) {
    if (!(std::abs(candidate[i] - truth[i]) <= tolerance)) differing.push_back(static_cast<int64_t>(i));
  }
  const auto count = static_cast<int64_t>(differing.size());
  const auto numel = static_cast<int64_t>(truth.size());
  if (count == 0) return "no element";
  if (count == numel) return "all " + std::to_string(numel) + " elements";
  const int64_t first = differing.front();
  const int64_t last = differing.back();
  if (!parameter.is_vector && parameter.rows > 1 && parameter.cols > 1 && count > 1) {
    const std::string block = DescribeBlock(parameter, differing);
    if (!block.empty()) return block;
  }
  if (count == last - first + 1) return Range("element", first, last, numel);
  return std::to_string(count) + " of " + std::to_string(numel) + " elements, from " + std::to_string(first) + " to " +
         std::to_string(last);
}

}  // namespace plumbline::conformance
