// SPDX-License-Identifier: Apache-2.0
// What the lists of cases are made of: problems (what is trained: model, data, optimizer; one truth each) and layouts
// (how it is distributed).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "conformance/cases/covering.h"
#include "conformance/contract/model_spec.h"
#include "conformance/contract/run_config.h"

namespace plumbline::conformance {

struct Problem {
  std::string name;
  contract::ModelSpec model;
  // One rank, one micro-batch, fp32: what truth is computed from. Layouts change how it is distributed and stored,
  // never the optimizer, its groups, the schedule, clipping or the batch.
  contract::RunConfig plain;
  int64_t steps = 60;
  // More than 0: no trajectory, but so many single steps, each from an initial state and a batch of its own, judged by
  // the mean of their slopes (bias_cases.h).
  int64_t unrelated_states = 0;
  // Like other problems but for its optimizer and clipping: relations between gradients would see nothing new.
  bool is_about_updates = false;
  // Of fp16: 0 for a dynamic scale.
  int64_t fp16_loss_scale = 0;
  contract::DynamicLossScale fp16_dynamic = {};
};

using AxisValues = std::vector<std::pair<std::string, std::string>>;  // axis, value

struct CaseSpec {
  std::string id;  // "exact/dense-v19/data2-zero1-acc3-bucket_at-fp32"
  int problem = 0;
  contract::RunConfig config;
  AxisValues axes;
};

// What a family's cases cover of its axes.
struct FamilyCoverage {
  std::string family;
  std::vector<Axis> axes;
  int64_t cases = 0;
  std::vector<Coverage> tuples;     // of two, three and four values
  std::vector<Exclusion> excluded;  // combinations that no valid case contains
};

struct CaseList {
  std::vector<Problem> problems;
  std::vector<CaseSpec> cases;
  std::vector<FamilyCoverage> coverage;
};

}  // namespace plumbline::conformance
