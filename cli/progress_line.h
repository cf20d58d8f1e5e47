// SPDX-License-Identifier: Apache-2.0
// One line on a terminal that says what is running, how many of how many, and how long that phase will take: what the
// next one takes is not known before it begins. Nothing in a pipe.
#pragma once

#include <string>

#include "conformance/runner/verify.h"

namespace plumbline::cli {

// The line's text, of whatever length.
std::string ProgressText(const conformance::VerifyProgress& progress);

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
