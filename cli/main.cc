// SPDX-License-Identifier: Apache-2.0
// The `plumbline` program: parses the command line, runs one command, and turns errors into one line and an exit code.
#include <csignal>
#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "cli/commands.h"
#include "conformance/contract/error.h"
#include "conformance/contract/strict_json.h"
#include "reports/record/record.h"

namespace {

using plumbline::contract::ExitCode;

int ReportError(const std::string& message, ExitCode code) {
  std::fprintf(stderr, "plumbline: %s\n", message.c_str());
  return static_cast<int>(code);
}

// Names the option that is nearest to the first unknown one, if any is near.
std::string Unexpected(const CLI::App& app, const CLI::ExtrasError& error) {
  for (const CLI::App* command : app.get_subcommands()) {
    std::vector<std::string> options;
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& name : option->get_lnames()) options.push_back("--" + name);
    }
    const std::vector<std::string_view> known(options.begin(), options.end());
    for (const std::string& word : command->remaining()) {
      const std::string name = word.substr(0, word.find('='));
      const auto nearest = plumbline::contract::Nearest(name, known);
      if (nearest) return name + " is unknown; did you mean " + std::string(*nearest) + "?";
    }
  }
  return std::string(error.what()) + "; --help shows what is allowed";
}

int Main(int argc, char** argv) {
  CLI::App app{"Checks engines that train neural networks: do they still train the same model?"};
  app.name("plumbline");
  app.require_subcommand(1);
  app.footer(
      std::string("Examples:\n  ./plumbline verify\n  ./plumbline verify --help\n  ./plumbline doctor\n  "
                  "./plumbline test\n\n"
                  "`test` (the project's own tests) and `build` are commands of the launcher, ./plumbline.\n\n") +
      plumbline::cli::kExitCodes);
  std::map<std::string, plumbline::cli::Command> commands;
  commands["verify"] = plumbline::cli::AddVerify(app);
  commands["merge"] = plumbline::cli::AddMerge(app);
  commands["doctor"] = plumbline::cli::AddDoctor(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    const auto chosen = app.get_subcommands();
    std::fputs((chosen.empty() ? &app : chosen.front())->help().c_str(), stdout);
    return static_cast<int>(ExitCode::kOk);
  } catch (const CLI::ExtrasError& error) {
    return ReportError(Unexpected(app, error), ExitCode::kUsage);
  } catch (const CLI::ParseError& error) {
    return ReportError(std::string(error.what()) + "; --help shows what is allowed", ExitCode::kUsage);
  }
  return commands.at(app.get_subcommands().front()->get_name())();
}

}  // namespace

int main(int argc, char** argv) {
  // Where a file may not grow, a failed write says so in one line; the signal would end us without a word.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    const int code = Main(argc, argv);
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
    return ReportError("standard output cannot be written", ExitCode::kEnvironment);
  } catch (const plumbline::contract::Error& error) {
    return ReportError(error.what(), plumbline::contract::ExitCodeOf(error.code()));
  } catch (const plumbline::reports::RecordError& error) {
    return ReportError(error.what(), ExitCode::kUsage);
  } catch (const std::system_error& error) {  // fmt's, where standard output cannot be written
    return ReportError(error.what(), ExitCode::kEnvironment);
  } catch (const std::exception& error) {
    return ReportError(std::string("internal error: ") + error.what(), ExitCode::kInternal);
  }
}
