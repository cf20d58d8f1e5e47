// SPDX-License-Identifier: Apache-2.0
// The one exception type of Plumbline, its codes, and the exit codes of its programs.
// Fail() reports what a user or a machine got wrong; Check() guards an invariant of our own and is always on.
#pragma once

#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>

namespace plumbline::contract {

enum class ErrorCode {
  kInvalidArgument,  // bad usage, config or input file
  kUnsupported,      // well-formed, but this engine or build cannot do it
  kEnvironment,      // device, network, disk
  kTimeout,          // a blocking call ran out of time
  kInternal,         // a broken invariant of our own
};

// Exit codes of `plumbline`, the same for every command; engines use 0, 3 and 4.
enum class ExitCode : int {
  kOk = 0,
  kFailure = 1,  // a verdict is a failure
  kUsage = 2,
  kUnsupported = 3,
  kEnvironment = 4,
  kInternal = 5,
  kUndecided = 6,
};

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message, std::source_location where = std::source_location::current())
      : std::runtime_error(message), code_(code), where_(where) {}

  ErrorCode code() const { return code_; }
  const std::source_location& where() const { return where_; }

 private:
  ErrorCode code_;
  std::source_location where_;
};

// Throws Error(code, message). The message is one line that names field, value and what is allowed.
[[noreturn]] void Fail(ErrorCode code, const std::string& message,
                       std::source_location where = std::source_location::current());

// Throws Error(kInternal) naming file and line unless `ok`.
void Check(bool ok, std::string_view invariant, std::source_location where = std::source_location::current());

ExitCode ExitCodeOf(ErrorCode code);

}  // namespace plumbline::contract
