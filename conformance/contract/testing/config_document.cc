// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/testing/config_document.h"

#include <gtest/gtest.h>

#include <utility>

#include "conformance/contract/file_io.h"
#include "conformance/contract/split.h"

namespace plumbline::contract::testing {
namespace {

std::string Stripped(const std::string& text) {
  const size_t begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

// What an object must have besides the key that is looked at: pairs of name and value.
using Siblings = std::vector<std::pair<std::string, std::string>>;

Siblings Required(const Words& path, size_t depth, const std::string& optimizer, const std::string& schedule) {
  if (depth == 0) return {};
  if (path[0] == "adaptive_clipping") {
    const bool of_units = path[1] == "ratio" || path[1] == "eps";
    return {{"type", of_units ? "\"unit\"" : "\"history\""}};
  }
  const std::string& object = path[depth - 1];
  if (object == "optimizer") return {{"type", '"' + optimizer + '"'}};
  if (object == "scheduler") return {{"type", '"' + schedule + '"'}};
  if (object == "param_groups[]") return {{"match", "\"*\""}};
  if (object != "params" || path[depth - 2] != "scheduler" || schedule == "WarmupLR") return {};
  if (schedule == "OneCycle") return {{"cycle_min_lr", "0.25"}, {"cycle_max_lr", "0.5"}};
  return {{"total_num_steps", "9"}};
}

// An object in which the member that `path` leads to has this value, or is missing where there is none. Objects on the
// way have what they require besides.
std::string Nested(const Words& path, size_t depth, const std::string& optimizer, const std::string& schedule,
                   const std::optional<std::string>& value) {
  const std::string& name = path[depth];
  std::string members;
  for (const auto& [sibling, its_value] : Required(path, depth, optimizer, schedule)) {
    if (sibling != name) members += (members.empty() ? "\"" : ", \"") + sibling + "\": " + its_value;
  }
  const bool is_list = name.ends_with("[]");
  std::optional<std::string> inner = value;
  if (depth + 1 < path.size()) inner = Nested(path, depth + 1, optimizer, schedule, value);
  if (inner) {
    members += (members.empty() ? "" : ", ") + ('"' + (is_list ? name.substr(0, name.size() - 2) : name) + "\": ") +
               (is_list ? "[" + *inner + "]" : *inner);
  }
  return "{" + members + "}";
}

}  // namespace

std::vector<Words> Rows(const std::string& title) {
  const std::string page = ReadFile("docs/config.md");
  const size_t begin = page.find("\n## " + title + "\n");
  EXPECT_NE(begin, std::string::npos) << title;
  const std::string section = page.substr(begin + 1, page.find("\n## ", begin + 1) - begin);
  std::vector<Words> rows;
  for (const std::string& line : Split(section, '\n')) {
    if (!line.starts_with("| `")) continue;
    Words cells;
    for (const std::string& cell : Split(line.substr(1), '|')) cells.push_back(Stripped(cell));
    std::erase(cells[0], '`');
    rows.push_back(cells);
  }
  return rows;
}

std::string ConfigWith(const std::string& key, const std::string& optimizer, const std::string& schedule,
                       const std::optional<std::string>& value) {
  const Words path = Split(key, '.');
  std::string json = Nested(path, 0, optimizer, schedule, value);
  json.pop_back();
  const auto add = [&](const std::string& member) { json += (json == "{" ? "" : ", ") + member; };
  add(key == "train_batch_size" ? "\"train_micro_batch_size_per_gpu\": 8" : "\"train_batch_size\": 8");
  if (path[0] != "optimizer") add("\"optimizer\": {\"type\": \"" + optimizer + "\"}");
  return json + "}";
}

}  // namespace plumbline::contract::testing
