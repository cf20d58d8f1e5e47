// SPDX-License-Identifier: Apache-2.0
// What all problems of the real families have alike: the storage types of a tier, the batch, the steps, and one rank
// with one micro-batch in fp32.
#pragma once

#include <string>

#include "conformance/cases/defect_layouts.h"
#include "conformance/cases/problem.h"
#include "conformance/cases/tier.h"

namespace plumbline::conformance {

// No groups, constant rate, no clipping.
inline Problem RealProblem(const std::string& name, const contract::ModelSpec& model, contract::OptimizerKind optimizer,
                           double lr) {
  constexpr int64_t kBatch = 24;  // divides by every data degree, and by most with every accumulation
  constexpr int64_t kSteps = 20;
  Problem problem{name, model, {}, kSteps};
  problem.plain.train_batch_size = kBatch;
  problem.plain.micro_batch_size = kBatch;
  problem.plain.optimizer = optimizer;
  problem.plain.params.lr = lr;
  return problem;
}

// The yardstick of one problem in a 16-bit type costs as much as all its cases in fp32 together: ten whole runs of the
// witness. So tier smoke tries it only where defects are.
inline bool TriesIn(Tier tier, const Problem& problem, const std::string& storage) {
  return tier != Tier::kSmoke || HasDefectLayout(problem, storage);
}

}  // namespace plumbline::conformance
