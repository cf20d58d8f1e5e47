// SPDX-License-Identifier: Apache-2.0
// Which parameters are bucketed together, which of these sets ZeRO 3 gathers, how often in a step, and which of them
// are in memory at each use: derived from the words of docs/zero3.md ("Groups", "The plan of gathers") and
// docs/formats.md
// ("Layers of different stages") and from nothing of any engine. Pure integers; it knows no buckets and no bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "conformance/contract/model_spec.h"
#include "conformance/contract/run_config.h"

namespace plumbline::conformance {

// Parameters (canonical indices, descending) that are bucketed together.
struct GatherSet {
  std::vector<size_t> parameters;
  int64_t stage = 3;
  int64_t gathers_per_step = 0;
};

// Whether it is of stage 3, which keeps it whole on every rank for its size. A frozen parameter is whole, but not
// persistent.
bool IsPersistent(const contract::ParameterSpec& parameter, const contract::RunConfig& config);

// Frozen parameters are in none of its sets.
struct GatherPlan {
  std::vector<GatherSet> groups;  // in their order; one that no unit uses is never gathered
  // What is whole between steps, in the order of buckets, each with a parameter at least: persistent parameters of
  // stage 3, those of stage 2, of stage 1, of stage 0. Gathered once, after the update, or under stage 0 never.
  std::vector<GatherSet> resident;
  // For each use of a step: the groups that are gathered or being gathered during it, ascending.
  std::vector<std::vector<size_t>> live;
  // For each use: the groups whose gather is posted before it, in the order in which they are posted.
  std::vector<std::vector<size_t>> posted;
};

GatherPlan PlanGathers(const contract::ModelSpec& model, const contract::RunConfig& config);

}  // namespace plumbline::conformance
