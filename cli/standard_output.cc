// SPDX-License-Identifier: Apache-2.0
#include "cli/standard_output.h"

#include <cerrno>
#include <cstdio>
#include <system_error>

namespace plumbline::cli {

int WriteOut(const std::string& text) {
  errno = 0;
  if (std::fputs(text.c_str(), stdout) != EOF && std::fflush(stdout) == 0) return 0;
  return errno != 0 ? errno : EIO;
}

void Print(const std::string& text) {
  if (const int reason = WriteOut(text)) throw std::system_error(reason, std::generic_category(), "standard output");
}

}  // namespace plumbline::cli
