// SPDX-License-Identifier: Apache-2.0
// The steps of an engine check that are cases of `verify`'s list: one for each thing that the engine claims, with as
// few ranks and as little else as there is in the list. They are judged as `verify` judges them.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "cli/engine_check/step.h"
#include "conformance/contract/batch_source.h"
#include "conformance/runner/truths.h"

namespace plumbline::cli {

struct ListedStep {
  std::string name;
  std::optional<contract::Case> spec;  // none: not claimed, or nothing in the list is of it
};

// Pure: what the description claims, from the lists of the tiers smoke and full. Only of families that it has.
std::vector<ListedStep> ListedSteps(const contract::EngineDescription& description);

struct CheckEngines {
  const conformance::Engine* reference = nullptr;
  const conformance::Engine* plain = nullptr;  // for real families
  const conformance::Engine* candidate = nullptr;
};

// False after a missing step. `line_of`: the command that judges a case by its id.
bool CheckListedSteps(const CheckEngines& engines, const contract::TokenSource& source,
                      const std::filesystem::path& work_dir, std::stop_token stop,
                      const std::function<std::string(const std::string& id)>& line_of, const ShowStep& show);

}  // namespace plumbline::cli
