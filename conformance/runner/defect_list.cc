// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/defect_list.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "conformance/contract/error.h"
#include "conformance/contract/file_io.h"
#include "conformance/contract/model_spec.h"
#include "conformance/contract/split.h"
#include "conformance/defects/switch.h"

namespace plumbline::conformance {
namespace {

ListedDefect Listed(std::string_view id, std::string_view title, std::string_view expect, std::string_view family,
                    std::string_view hypothesis) {
  return {std::string(id),     std::string(title),      std::string(family),
          std::string(expect), std::string(hypothesis), ExpectedChecks(expect)};
}

bool IsFamily(const std::string& word) {
  return std::find(std::begin(contract::kFamilyNames), std::end(contract::kFamilyNames), word) !=
         std::end(contract::kFamilyNames);
}

}  // namespace

std::vector<std::string> ExpectedChecks(std::string_view expect) {
  std::vector<std::string> checks;
  std::string name;
  for (char c : expect.substr(0, expect.find(':'))) {
    if (c == ',') checks.push_back(std::exchange(name, ""));
    if (c != ',' && c != ' ') name += c;
  }
  checks.push_back(name);
  if (checks == std::vector<std::string>{"any"}) checks.clear();
  return checks;
}

std::vector<ListedDefect> PlantedDefects(bool all) {
  std::vector<ListedDefect> listed;
  for (const defects::Defect& defect : defects::Defects()) {
    const bool smoke =
        std::find(std::begin(kSmokeDefects), std::end(kSmokeDefects), defect.id) != std::end(kSmokeDefects);
    if (smoke || all)
      listed.push_back(Listed(defect.id, defect.title, defect.expect, defect.family, defect.hypothesis));
  }
  return listed;
}

std::vector<ListedDefect> ReadDefectList(const std::filesystem::path& path) {
  std::vector<ListedDefect> listed;
  int64_t number = 0;
  for (const std::string& line : contract::Split(contract::ReadFile(path), '\n')) {
    ++number;
    if (line.empty()) continue;
    const std::vector<std::string> fields = contract::Split(line, '\t');
    const bool is_one = fields.size() == 4 && !fields[0].empty() && IsFamily(fields[3]);
    if (!is_one) {
      contract::Fail(contract::ErrorCode::kInvalidArgument,
                     path.string() + ":" + std::to_string(number) +
                         ": not `id TAB title TAB expect TAB family` with family exact, gpt2 or llama");
    }
    listed.push_back(Listed(fields[0], fields[1], fields[2], fields[3], ""));
  }
  return listed;
}

}  // namespace plumbline::conformance
