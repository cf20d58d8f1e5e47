// SPDX-License-Identifier: Apache-2.0
#include "cli/engine_check/step_text.h"

#include <fmt/format.h>

#include "cli/engine_check/hints.h"
#include "cli/shell_words.h"

namespace plumbline::cli {
namespace {

constexpr const char* kStates[] = {"ok", "missing", "-"};  // in the order of Step::State

}  // namespace

std::string StepText(const Step& step) {
  std::string text = fmt::format("{:<9}{:<15}{}\n", kStates[static_cast<int>(step.state)], step.name, step.seen);
  if (step.state != Step::State::kMissing) return text;
  text += fmt::format("  expected   {}\n", HintOf(step.name));
  if (!step.reproduce.empty()) text += fmt::format("  again      {}\n", step.reproduce);
  return text;
}

std::string EndText(int num_ok, int num_not_claimed, bool complete, const std::string& engine) {
  const std::string ok = fmt::format("\n{} step{} ok, ", num_ok, num_ok == 1 ? " is" : "s are");
  if (!complete) return ok + "the next one is missing.\n";
  return fmt::format("{}{} not claimed. All cases: ./plumbline verify --engine {}\n", ok, num_not_claimed,
                     Quoted(engine));
}

}  // namespace plumbline::cli
