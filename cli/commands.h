// SPDX-License-Identifier: Apache-2.0
// The commands of the program: each adds itself to the command line and returns what to run. No command knows another.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace plumbline::cli {

// Runs the command after parsing; returns the exit code; throws contract::Error or reports::RecordError.
using Command = std::function<int()>;

Command AddVerify(CLI::App& app);
Command AddMerge(CLI::App& app);
Command AddRun(CLI::App& app);
Command AddDoctor(CLI::App& app);
Command AddEngine(CLI::App& app);

// Ends the help of every command.
inline constexpr const char* kExitCodes =
    "Exit codes: 0 ok, 1 a verdict is a failure or nothing was selected, 2 bad usage\n"
    "or input, 3 unsupported, 4 environment (device, network, disk), 5 internal\n"
    "error, 6 undecided, 130 interrupted (143 by SIGTERM).";

}  // namespace plumbline::cli
