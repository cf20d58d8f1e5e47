// SPDX-License-Identifier: Apache-2.0
// Collects the six quantities of the certificate over a run, each with the place of its largest value
// (docs/exact-family.md, "Certificate"). It only looks: it computes no value that the model uses, and judges nothing.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "conformance/contract/trace.h"
#include "reference/ops/fold.h"
#include "reference/ops/matrix.h"
#include "reference/ops/sum.h"

namespace plumbline::reference {

// A point of the model: {0, "attn.q"} is "layers.0.attn.q". `name` outlives the recorder (a literal, or a parameter's
// name).
struct Place {
  static constexpr int64_t kNoLayer = -1;
  int64_t layer = kNoLayer;
  const char* name = "";
};

std::string ToString(const Place& place);

class Recorder {
 public:
  // All six quantities start at 0.
  Recorder();

  // What follows happens in this step.
  void BeginStep(int64_t step) { step_ = step; }

  // A sum that makes an activation or the gradient of one: Σ|terms| → activation_sum, |value| → stored.
  void ActivationSum(const Sum& sum, const Place& place);
  // A value kept without a sum of its own: |value| → stored.
  void Stored(const Matrix& value, const Place& place);
  // The argument of a fold: |x| + b → fold_input. The identity has no bound and counts for nothing.
  void FoldInput(const Matrix& x, const Fold& fold, const Place& place);
  // A complete weight gradient: Σ|terms| → gradient_sum.
  void GradientSum(const Sum& gradient, const Place& place);
  // What the optimizer consumes: |D| → gradient.
  void Gradient(const Matrix& gradient, const Place& place);
  // M, U, and M + D + t before the wrap: |value| → state.
  void State(const Matrix& value, const Place& place);

  const std::map<std::string, contract::Certificate::Quantity>& quantities() const { return quantities_; }

 private:
  void Raise(const char* quantity, double value, const Place& place);

  int64_t step_ = 0;
  std::map<std::string, contract::Certificate::Quantity> quantities_;
};

}  // namespace plumbline::reference
