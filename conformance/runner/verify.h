// SPDX-License-Identifier: Apache-2.0
// `plumbline verify`: runs the truths, the cases and the planted defects, judges them, and returns the record.
// It writes below work_dir only; what the user sees (table, record.json, junit.xml) is made from the record by others.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "conformance/runner/verify_options.h"
#include "reports/record/record.h"

namespace plumbline::conformance {

struct VerifyProgress {
  std::string_view phase;  // "cases (3 of 3)"; the counts and times are its own
  int64_t done = 0;
  int64_t total = 0;
  double elapsed_s = 0;
  std::string last;  // what has just ended
  // While the case `last` is made smaller: `done` smaller ones have been tried, of an unknown number.
  std::optional<double> shrink_left_s;
};

// Throws contract::Error for what is wrong before any case can be judged (text, engine program, folders). `progress` is
// called from several threads, one call at a time.
reports::Record Verify(const VerifyOptions& options, std::stop_token stop,
                       const std::function<void(const VerifyProgress&)>& progress);

}  // namespace plumbline::conformance
