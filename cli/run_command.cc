// SPDX-License-Identifier: Apache-2.0
// `plumbline run`: a program with N ranks on this host, as torchrun starts it, without Python.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/option_values.h"
#include "conformance/contract/error.h"
#include "conformance/engines/rank_launch.h"

namespace plumbline::cli {
namespace {

struct Options {
  std::string ranks;
  std::string grace = "5";
  std::vector<std::string> command;
};

constexpr IntegerRange kRanks{1, 1024};
constexpr SecondsRange kGrace{0, 86400};

// Ranks share our streams: each line goes out whole and at once.
void Pass(FILE* stream, const std::string& prefix, std::string_view line) {
  std::fwrite(prefix.data(), 1, prefix.size(), stream);
  std::fwrite(line.data(), 1, line.size(), stream);
  if (std::fflush(stream) != 0 && stream == stdout) throw std::system_error(errno, std::generic_category(), "stdout");
}

void RequireBoth(const Options& options) {
  const bool ranks = !options.ranks.empty();
  if (ranks && !options.command.empty()) return;
  contract::Fail(contract::ErrorCode::kInvalidArgument,
                 std::string(ranks ? "no program is named" : "--ranks is missing") +
                     "; for example `plumbline run --ranks 2 -- PROGRAM ARGUMENT`");
}

int Run(const Options& options) {
  RequireBoth(options);
  const InterruptWatcher interrupt("ending the ranks; again to quit at once");
  conformance::LaunchOptions launch;
  launch.command = options.command;
  launch.ranks = static_cast<int64_t>(kRanks.Parse("--ranks", options.ranks));
  launch.peer_grace_s = kGrace.Parse("--grace", options.grace);
  const bool prefixed = launch.ranks > 1;
  const auto pass = [prefixed](FILE* stream) {
    return [stream, prefixed](int64_t rank, std::string_view line) {
      Pass(stream, prefixed ? std::to_string(rank) + ": " : "", line);
    };
  };
  const int code = conformance::LaunchRanks(
      launch, interrupt.token(), {.out = pass(stdout), .err = pass(stderr), .say = [](const std::string& message) {
                                    std::fprintf(stderr, "plumbline: %s\n", message.c_str());
                                  }});
  return interrupt.exit_code().value_or(code);
}

}  // namespace

Command AddRun(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("run", "Start a program with N ranks on this host, and end all when one fails");
  const auto options = std::make_shared<Options>();
  command->add_option("PROGRAM", options->command, "The program, looked for in PATH, and its arguments; behind --")
      ->type_name("");
  command->add_option("--ranks", options->ranks, "How many copies of the program are started")
      ->type_name(kRanks.text());
  command
      ->add_option("--grace", options->grace, "What the others get to end by themselves after one failed (default: 5)")
      ->type_name(kGrace.text());
  command->footer(
      "Each copy has RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT in its\n"
      "environment, as torchrun sets them, and no standard input. With more than one\n"
      "rank each line of output begins with the number of its rank.\n\n"
      "Examples:\n"
      "  ./plumbline run --ranks 2 -- my_engine run --case CASE --out OUT\n"
      "  ./plumbline run --ranks 4 -- python3 train.py\n"
      "  ./plumbline run --ranks 2 -- sh -c 'echo $RANK of $WORLD_SIZE'\n\n"
      "Exit codes: 0 if every rank ended with 0, else that of the rank that failed\n"
      "first, or 128 plus the number of the signal that killed it; 2 bad usage, 4 the\n"
      "machine cannot start it, 130 interrupted (143 by SIGTERM).");
  return [options] { return Run(*options); };
}

}  // namespace plumbline::cli
