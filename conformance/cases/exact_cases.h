// SPDX-License-Identifier: Apache-2.0
// The exact cases of `verify`: problems (what is trained: model, data, optimizer; one truth each) and layouts (how it
// is distributed). Layouts come from a covering array over the axes declared in the .cc file: a new axis is one
// declaration there.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "conformance/contract/model_spec.h"
#include "conformance/contract/run_config.h"

namespace plumbline::conformance {

struct Problem {
  std::string name;
  contract::ExactSpec model;
  contract::OptimizerKind optimizer = contract::OptimizerKind::kModularMomentum;
  int64_t batch = 0;
  int64_t steps = 60;
};

struct CaseSpec {
  std::string id;  // "exact/dense-v19/data2-zero1-acc3-bucket_at-fp32"
  int problem = 0;
  contract::RunConfig config;
  std::vector<std::pair<std::string, std::string>> axes;
};

struct CaseList {
  std::vector<Problem> problems;
  std::vector<CaseSpec> cases;
  int64_t num_triples = 0;            // covered triples of axis values: all that are valid
  std::vector<std::string> excluded;  // triples that no valid case contains
};

// Every problem fits bf16 unless its certificate says otherwise; see the axes for what is excluded.
CaseList ExactCases();

// The problem's plain layout: one rank, one micro-batch, fp32. What truth is computed from.
contract::RunConfig PlainConfig(const Problem& problem);

}  // namespace plumbline::conformance
