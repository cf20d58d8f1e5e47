// SPDX-License-Identifier: Apache-2.0
// One line on a terminal that says what is running, how many of how many, and how long it will take. Nothing in a pipe.
#pragma once

#include <string>

#include "conformance/runner/verify.h"

namespace plumbline::cli {

class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();  // clears the line
  void Show(const conformance::VerifyProgress& progress);

 private:
  static void Draw(std::string line);

  bool terminal_;
  double shown_at_s_ = -1;
};

}  // namespace plumbline::cli
