// SPDX-License-Identifier: Apache-2.0
// A run that goes on from the checkpoint of another, of any family: its case, what its trace looks like, and the
// comparison with the run that was never interrupted. Pure: no files.
#pragma once

#include <cstdint>

#include "conformance/contract/case_file.h"
#include "conformance/oracle/real_check.h"
#include "conformance/oracle/real_start.h"
#include "conformance/oracle/run_digest.h"
#include "conformance/oracle/step_sight.h"

namespace plumbline::conformance {

// `base`: the whole run.
contract::Case ResumedCase(const contract::Case& base);

// The case as if it began after this step.
contract::Case AfterStep(const contract::Case& base, int64_t saved_step);

RunDigest Steps(const RunDigest& run, size_t begin, size_t count);

// "relation": bit for bit the last steps of the whole run. Without the master weights of frozen parameters: they repeat
// the numbers of the case, and those of a case that resumes are not the saving run's (docs/formats.md); what the
// checkpoint must give back is the frozen weights.
RealResult CompareResumed(const contract::ModelSpec& model, const RunDigest& whole, const RunDigest& resumed);

// A step after resuming, with the master weights of frozen parameters as the state before it has them, for the same
// reason. Their weights stay, and must fit.
StepSight WithFrozenMastersOf(const RealStart& start, const contract::ModelSpec& model, StepSight sight);

}  // namespace plumbline::conformance
