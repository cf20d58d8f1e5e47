// SPDX-License-Identifier: Apache-2.0
// The engines of one verification, each with what it says of itself. Starts them with `describe` alone.
#pragma once

#include <optional>
#include <string>

#include "conformance/runner/plan.h"
#include "conformance/runner/truths.h"
#include "conformance/runner/verify_options.h"

namespace plumbline::conformance {

struct VerifyEngines {
  Engine reference;
  Engine candidate;   // the engine under test
  Engine witness;     // empty where no case and no truth needs it
  Engine switchable;  // empty without defects
  Engine processes;   // empty where no case is its
  // Why an engine of somebody else cannot run on this machine at all (its exit code is 4): its cases are NOT_RUN.
  std::optional<std::string> absent;

  const Engine& Of(Role role) const;
};

// Throws what Describe throws, but for what `absent` is for.
VerifyEngines DescribeEngines(const VerifyOptions& options, bool with_witness, bool with_processes = false);

}  // namespace plumbline::conformance
