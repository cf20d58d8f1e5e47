// SPDX-License-Identifier: Apache-2.0
// The truth of a problem: what the reference trained, whether equality with it means something (certificate, liveness),
// and how far one wrong unit would have spread (amplification, from runs of the reference with a unit added on
// purpose).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "conformance/cases/problem.h"
#include "conformance/contract/case_file.h"
#include "conformance/contract/trace.h"
#include "conformance/oracle/run_digest.h"
#include "conformance/runner/plan.h"
#include "reports/record/record.h"

namespace plumbline::conformance {

// One run of the reference that a truth needs; the first of a problem is the truth itself, the others are perturbed.
struct TruthRun {
  contract::Case spec;
  std::string perturbed;  // kind, or empty for the truth
};

std::vector<TruthRun> TruthRuns(const Problem& problem, const PlanOptions& options);

struct Truth {
  std::string error;  // one line if the reference did not deliver; the rest is empty then
  RunDigest run;
  contract::Certificate certificate;
  std::vector<reports::CheckRecord> checks;  // liveness, amplification
};

// Reads the finished runs; out_dirs in the order of TruthRuns. `first_error` is the first outcome that was not ok, if
// any.
Truth ReadTruth(const std::vector<TruthRun>& runs, const std::vector<std::filesystem::path>& out_dirs,
                const std::optional<std::string>& first_error);

}  // namespace plumbline::conformance
