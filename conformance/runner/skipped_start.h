// SPDX-License-Identifier: Apache-2.0
// States before a step that must be skipped, of two kinds. "nan": the embedding of one token has no value, and the
// step's batch has the token; no part of the gradient has a value then. In the next step's batch another token is in
// its place, and that step is made from the same state: what a skipped step counts, though it may not, shows in its
// bias corrections and rates. "inf": the gradient of the last norm's weight overflows, and all else of the gradient is
// finite. Pure: no files.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "conformance/cases/problem.h"
#include "conformance/contract/batch_source.h"
#include "conformance/contract/batches.h"
#include "conformance/contract/model_spec.h"
#include "conformance/contract/run_config.h"
#include "conformance/runner/run_task.h"

namespace plumbline::conformance {

struct SkippedStart {
  std::string value;  // "inf", "nan"
  // The problem's with a head of its own: of a tied one every logit of both steps would be without a value.
  contract::ModelSpec model;
  std::shared_ptr<const RealStart> start;
  // Of the skipped step and of the one that follows it; none: the text's, and no step follows.
  std::shared_ptr<const contract::Batches> batches = nullptr;

  bool is_followed() const { return batches != nullptr; }
};

// The problem's model, its head not tied to the embedding.
contract::ModelSpec UntiedModel(const contract::ModelSpec& model);

// A state of the problem as one of UntiedModel: the head begins as a copy of the embedding, with its moments, or, where
// the embedding is frozen, with moments of zero.
std::vector<contract::RealParameterState> UntiedState(const Problem& problem,
                                                      std::vector<contract::RealParameterState> state);

// Whether a step after a skipped one shows how many updates were made, or norms and overflows remembered.
bool CountsUpdates(const contract::RunConfig& config);

// `before`: the state before step `step`. The token is, of those that begin a sample of the step, and so count for its
// loss whatever the loss weights, one of those in the fewest other samples, so that few ranks see it. No step follows
// where an update needs the norm of weights, which has no value then: with LAMB and clipping by units. "inf" is there
// where the last norm is exempt from clipping, so that only what is exempt is not finite, or the head has its own
// weights anyway, else, for the sake of time, only "nan"; nor in a model so narrow, or a batch with so few labels, that
// nothing overflows.
std::vector<SkippedStart> MakeSkippedStarts(const Problem& problem, uint64_t seed, const contract::TokenSource& source,
                                            const RealStart& before, int64_t step);

}  // namespace plumbline::conformance
