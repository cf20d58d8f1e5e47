// SPDX-License-Identifier: Apache-2.0
// Trains a case of any real family as docs/semantics.md says under "One step": all but the model, which is behind
// real_model.h. The state is read as F32 and kept in fp64, and the working weights are the master weights: nothing is
// ever rounded to a storage type, since this is the truth that other engines' rounding is measured against.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "conformance/contract/case_file.h"
#include "conformance/contract/trace.h"
#include "reference/engine/real_model.h"
#include "reference/engine/trainer.h"
#include "reference/model/step_batch.h"
#include "reference/ops/matrix.h"
#include "reference/optimizer/parameter_update.h"

namespace plumbline::reference {

class RealTrainer : public Trainer {
 public:
  explicit RealTrainer(const contract::CaseData& data);

  void Forward(int64_t step) override;
  void Backward() override;

  // The global norm of what is not exempt from clipping, and whether the step is skipped: it is if a gradient is NaN or
  // infinite anywhere, an exempt one too, and then the norm is not finite either.
  void CheckGradient() override;

  // A skipped step leaves weights, moments, the count of updates and the history of norms as they are. Errors:
  // InvalidArgument if the schedule of a group is not defined; Unsupported for an optimizer, a schedule or a way of
  // clipping that is not known.
  void Update() override;

  double loss() const override { return loss_; }
  int64_t num_weighted_tokens() const override;
  std::optional<contract::RealStep> real() const override { return real_; }

  // kGradient: the complete gradient g, before clipping. Frozen parameters have master and weight only.
  const Tensors& Of(contract::TensorKind kind) const override;
  std::optional<contract::Certificate> Certificate() const override { return std::nullopt; }

  int64_t num_updates() const { return num_updates_; }

 private:
  bool Exempt(size_t parameter) const;
  double ClippingFactor() const;
  Matrix Clipped(size_t parameter, double factor) const;
  ParameterState StateOf(size_t parameter) const;
  void Keep(size_t parameter, const ParameterState& state);

  const contract::CaseData data_;
  const std::unique_ptr<RealModel> model_;  // of data_.spec.model, hence after it
  int64_t num_updates_ = 0;

  int64_t step_ = 0;
  StepBatch batch_;
  double loss_ = 0;
  contract::RealStep real_;
  Tensors gradient_, moment_, second_moment_, master_;
};

}  // namespace plumbline::reference
