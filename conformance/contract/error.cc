// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/error.h"

namespace plumbline::contract {

void Fail(ErrorCode code, const std::string& message, std::source_location where) { throw Error(code, message, where); }

void Check(bool ok, std::string_view invariant, std::source_location where) {
  if (ok) return;
  throw Error(ErrorCode::kInternal,
              std::string(where.file_name()) + ":" + std::to_string(where.line()) +
                  ": broken invariant: " + std::string(invariant),
              where);
}

ExitCode ExitCodeOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return ExitCode::kUsage;
    case ErrorCode::kUnsupported:
      return ExitCode::kUnsupported;
    case ErrorCode::kEnvironment:
    case ErrorCode::kTimeout:
      return ExitCode::kEnvironment;
    case ErrorCode::kInternal:
      return ExitCode::kInternal;
  }
  return ExitCode::kInternal;
}

}  // namespace plumbline::contract
