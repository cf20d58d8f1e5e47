// SPDX-License-Identifier: Apache-2.0
// The runs that a metamorphic case is made of: the whole first, then its variants, made by other batches, another
// config or other weights. Pure: no files. An engine needs no feature for them: batches and weights are files of every
// case.
#pragma once

#include <string>
#include <vector>

#include "conformance/cases/metamorphic_cases.h"
#include "conformance/contract/batches.h"
#include "conformance/contract/case_file.h"
#include "conformance/runner/rescaled_weights.h"
#include "conformance/runner/run_task.h"
#include "conformance/runner/shifted_weights.h"

namespace plumbline::conformance {

struct MetamorphicRuns {
  std::vector<TaskRun> runs;
  Exponents exponents;          // of kScaled
  Shift shift;                  // of kShiftedLogits and kShiftedScores
  std::string nothing_changed;  // one line: why the variant shows nothing; empty where it does
};

// `whole`: the case, all of whose steps are run. `batches`: those of the case.
MetamorphicRuns MakeMetamorphicRuns(MetamorphicRelation relation, const contract::Case& whole,
                                    const contract::Batches& batches);

}  // namespace plumbline::conformance
