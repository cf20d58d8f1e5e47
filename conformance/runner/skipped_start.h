// SPDX-License-Identifier: Apache-2.0
// States before a step that must be skipped: the embedding of one token holds a value that is not finite, and the
// step's batch has the token. Where the next step's batch does not, that step is made from the same state: what a
// skipped step counts, though it may not, shows in its bias corrections and rates. Pure: no files.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "conformance/cases/problem.h"
#include "conformance/contract/batch_source.h"
#include "conformance/contract/model_spec.h"
#include "conformance/runner/run_task.h"

namespace plumbline::conformance {

struct SkippedStart {
  std::string value;  // "inf", "nan"
  // The problem's with a head of its own: of a tied one every logit of both steps would be without a value.
  contract::ModelSpec model;
  std::shared_ptr<const RealStart> start;
  // By a step that is made: of NaNs alone, since decay of Inf by a rate of 0 is NaN in a formula, and none in an
  // engine.
  bool is_followed = false;
};

// The problem's model, its head not tied to the embedding.
contract::ModelSpec UntiedModel(const contract::ModelSpec& model);

// A state of the problem as one of UntiedModel: the head begins as a copy of the embedding, with its moments, or, where
// the embedding is frozen, with moments of zero.
std::vector<contract::RealParameterState> UntiedState(const Problem& problem,
                                                      std::vector<contract::RealParameterState> state);

// `before`: the state before step `step`. The token is, of those that begin a sample of the step, and so count for its
// loss whatever the loss weights, one that the next step does not have, and of these one of those in the fewest other
// samples, so that few ranks see it. An Inf and a NaN where the head has its own weights anyway, else a NaN alone, for
// the sake of time.
std::vector<SkippedStart> MakeSkippedStarts(const Problem& problem, uint64_t seed, const contract::TokenSource& source,
                                            const RealStart& before, int64_t step);

}  // namespace plumbline::conformance
