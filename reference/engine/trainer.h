// SPDX-License-Identifier: Apache-2.0
// What a trainer of any family does in a step and shows after it, so that running a case, its trace and its dumps are
// written once. A trainer writes no file.
//   const std::unique_ptr<Trainer> trainer = MakeTrainer(data);
//   for (step …) { trainer->Forward(step); trainer->Backward(); trainer->CheckGradient(); trainer->Update(); … }
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "conformance/contract/case_file.h"
#include "conformance/contract/trace.h"
#include "reference/ops/matrix.h"

namespace plumbline::reference {

// One matrix for each parameter, in canonical order.
using Tensors = std::vector<Matrix>;

class Trainer {
 public:
  virtual ~Trainer() = default;

  // Steps count from the case's first step and follow each other. Errors: InvalidArgument if no token of the step has
  // weight.
  virtual void Forward(int64_t step) = 0;
  virtual void Backward() = 0;

  // What the family demands of the complete gradient.
  virtual void CheckGradient() = 0;

  // The optimizer's step, and the working weights of the next one.
  virtual void Update() = 0;

  // Of the last step.
  virtual double loss() const = 0;
  virtual int64_t num_weighted_tokens() const = 0;
  // Of the real families, whose values are reals; without it they are integers.
  virtual std::optional<contract::RealStep> real() const = 0;

  // Of the last step; moments, master and weight after the update. A matrix without elements stands for a parameter
  // that has no such value; no matrix at all, for an optimizer that keeps none.
  virtual const Tensors& Of(contract::TensorKind kind) const = 0;

  // Over all steps so far; families that are not certified have none.
  virtual std::optional<contract::Certificate> Certificate() const = 0;
};

// The trainer of the case's family.
std::unique_ptr<Trainer> MakeTrainer(const contract::CaseData& data);

}  // namespace plumbline::reference
