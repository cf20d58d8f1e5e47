// SPDX-License-Identifier: Apache-2.0
// The `plumbline` program: parses the command line, runs one command, and turns errors into one line and an exit code.
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "cli/commands.h"
#include "cli/help_text.h"
#include "cli/standard_output.h"
#include "cli/usage_error.h"
#include "conformance/contract/error.h"
#include "reports/record/record.h"

namespace {

using plumbline::contract::ExitCode;

int ReportError(const std::string& message, ExitCode code) {
  std::fprintf(stderr, "plumbline: %s\n", message.c_str());
  return static_cast<int>(code);
}

// reason: of errno, or 0 where it is not known.
int ReportLostOutput(int reason) {
  pollfd output{STDOUT_FILENO, POLLOUT, 0};
  const bool reader_is_gone = poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0;
  const std::string why = reason == 0 ? "" : std::string(": ") + std::strerror(reason);
  if (!reader_is_gone) return ReportError("standard output cannot be written" + why, ExitCode::kEnvironment);
  std::signal(SIGPIPE, SIG_DFL);
  return std::raise(SIGPIPE);
}

// What CLI11 would take for a value, or pass by: before it looks.
std::optional<std::string> MissingValue(const CLI::App& app, int argc, char** argv) {
  if (argc < 2) return std::nullopt;
  const std::vector<std::string> words(argv + 2, argv + argc);
  const auto named = app.get_subcommands([&](const CLI::App* command) { return command->get_name() == argv[1]; });
  return named.empty() ? std::nullopt : plumbline::cli::MissingValue(*named.front(), words);
}

int Main(int argc, char** argv) {
  CLI::App app{"Checks engines that train neural networks: do they still train the same model?"};
  app.name("./plumbline");
  app.formatter(std::make_shared<plumbline::cli::HelpText>());
  app.require_subcommand(1);
  app.footer(
      std::string("Examples:\n  ./plumbline verify\n  ./plumbline verify --help\n  ./plumbline doctor\n  "
                  "./plumbline test\n\n"
                  "`test` (the project's own tests) and `build` are commands of the launcher,\n./plumbline.\n\n") +
      plumbline::cli::kExitCodes);
  std::map<std::string, plumbline::cli::Command> commands;
  commands["verify"] = plumbline::cli::AddVerify(app);
  commands["merge"] = plumbline::cli::AddMerge(app);
  commands["run"] = plumbline::cli::AddRun(app);
  commands["doctor"] = plumbline::cli::AddDoctor(app);
  commands["engine"] = plumbline::cli::AddEngine(app);
  if (const auto missing = MissingValue(app, argc, argv)) return ReportError(*missing, ExitCode::kUsage);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    const auto chosen = app.get_subcommands();
    plumbline::cli::Print(chosen.empty() ? app.help() : chosen.front()->help(app.get_name()));
    return static_cast<int>(ExitCode::kOk);
  } catch (const CLI::ParseError& error) {
    return ReportError(plumbline::cli::Explain(app, error), ExitCode::kUsage);
  }
  return commands.at(app.get_subcommands().front()->get_name())();
}

}  // namespace

int main(int argc, char** argv) {
  // Where nobody reads on, as in `| head`, we tidy up first, and then end as if the signal had come.
  std::signal(SIGPIPE, SIG_IGN);
  // Where a file may not grow, a failed write says so in one line; the signal would end us without a word.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    const int code = Main(argc, argv);
    errno = 0;
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
    return ReportLostOutput(errno);
  } catch (const plumbline::contract::Error& error) {
    return ReportError(error.what(), plumbline::contract::ExitCodeOf(error.code()));
  } catch (const plumbline::reports::RecordError& error) {
    return ReportError(error.what(), ExitCode::kUsage);
  } catch (const std::system_error& error) {
    if (std::ferror(stdout) != 0) return ReportLostOutput(error.code().value());  // fmt's among them, which says "file"
    return ReportError(error.what(), ExitCode::kEnvironment);
  } catch (const std::exception& error) {
    return ReportError(std::string("internal error: ") + error.what(), ExitCode::kInternal);
  }
}
