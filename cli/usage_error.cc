// SPDX-License-Identifier: Apache-2.0
#include "cli/usage_error.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "conformance/contract/strict_json.h"

namespace plumbline::cli {
namespace {

// The option of that name, "--seed" say.
const CLI::Option* Find(const CLI::App& command, const std::string& name) {
  if (!name.starts_with("--")) return nullptr;
  return command.get_option_no_throw(name);
}

std::vector<std::string> LongNames(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::vector<std::string> Commands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::optional<std::string> NearestOf(const std::string& word, const std::vector<std::string>& known) {
  const std::vector<std::string_view> views(known.begin(), known.end());
  const auto nearest = contract::Nearest(word, views);
  return nearest ? std::optional(std::string(*nearest)) : std::nullopt;
}

const CLI::App& Chosen(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : *chosen.front();
}

std::string SeeHelp(const CLI::App& app) {
  const CLI::App& command = Chosen(app);
  return "; `plumbline " + (&command == &app ? "" : command.get_name() + " ") + "--help` shows what is allowed";
}

// The first word that is nearly an option is told before those that are like none.
std::string Unexpected(const CLI::App& app) {
  const CLI::App& command = Chosen(app);
  const bool no_command = &command == &app;
  const std::vector<std::string> words = command.remaining();
  const std::vector<std::string> known = no_command ? Commands(app) : LongNames(command);
  for (const std::string& word : words) {
    const std::string name = word.substr(0, word.find('='));
    if (const auto nearest = NearestOf(name, known)) return name + " is unknown; did you mean " + *nearest + "?";
  }
  const std::string first = words.empty() ? "" : words.front();
  if (no_command) return "unknown command " + first + "; allowed: " + Joined(Commands(app));
  return (first.starts_with("-") ? first + " is unknown" : command.get_name() + " takes no \"" + first + "\"") +
         SeeHelp(app);
}

// The option that CLI11's sentence begins with.
const CLI::Option* Subject(const CLI::App& app, const std::string& sentence) {
  const std::string name = sentence.substr(0, sentence.find_first_of(": "));
  return Find(Chosen(app), name);
}

std::string ExplainMismatch(const CLI::App& app, const std::string& sentence) {
  const CLI::Option* option = Subject(app, sentence);
  if (!option) return sentence + SeeHelp(app);
  const std::string name = option->get_name();
  if (option->get_expected_max() == 0) return name + " takes no value";
  if (option->count() > 1) return name + " is given " + std::to_string(option->count()) + " times; allowed: once";
  return name + " has no value; allowed: " + option->get_type_name();
}

}  // namespace

std::optional<std::string> MissingValue(const CLI::App& command, std::span<const std::string> words) {
  for (size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    const size_t equals = words[i].find('=');
    const CLI::Option* option = Find(command, words[i].substr(0, equals));
    if (!option || option->get_expected_max() == 0) continue;
    const bool joined = equals != std::string::npos;
    if (!joined) ++i;
    const bool missing = joined ? equals + 1 == words[i].size() : i == words.size() || words[i].empty();
    const bool is_option = !joined && !missing && words[i].starts_with("--");
    if (!missing && !is_option) continue;
    return option->get_name() + " has no value" + (is_option ? " before " + words[i] : "") +
           "; allowed: " + option->get_type_name();
  }
  return std::nullopt;
}

std::string Explain(const CLI::App& app, const CLI::ParseError& error) {
  const std::string sentence = error.what();
  if (dynamic_cast<const CLI::ExtrasError*>(&error)) return Unexpected(app);
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error)) return ExplainMismatch(app, sentence);
  if (dynamic_cast<const CLI::ConversionError*>(&error)) {
    for (const CLI::Option* option : Chosen(app).get_options()) {
      if (option->get_expected_max() == 0 && sentence.find(option->get_name()) != std::string::npos) {
        return option->get_name() + " takes no value";
      }
    }
  }
  if (dynamic_cast<const CLI::RequiredError*>(&error)) {
    if (app.get_subcommands().empty() && !app.remaining().empty()) return Unexpected(app);
    if (app.get_subcommands().empty()) return "no command; allowed: " + Joined(Commands(app));
    const std::string name = sentence.substr(0, sentence.find(' '));
    return "no " + name + (name.ends_with('s') ? " are" : " is") + " named" + SeeHelp(app);
  }
  constexpr std::string_view kExcludes = " excludes ";
  if (const size_t at = sentence.find(kExcludes); at != std::string::npos) {
    // CLI11 finds them in an order of its own, which is another in each run.
    std::string one = sentence.substr(0, at), other = sentence.substr(at + kExcludes.size());
    if (other < one) std::swap(one, other);
    return one + " and " + other + " exclude each other";
  }
  return sentence + SeeHelp(app);
}

}  // namespace plumbline::cli
