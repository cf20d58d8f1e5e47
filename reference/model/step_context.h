// SPDX-License-Identifier: Apache-2.0
// What every layer of the model needs in one step: sizes, the two folds, the dropout's coordinates, and the recorder
// that sees each sum and each fold on its way. The folds are a choice of the caller, so that a test can replace them by
// the identity.
#pragma once

#include <cstdint>
#include <optional>

#include "conformance/contract/model_spec.h"
#include "conformance/contract/random_stream.h"
#include "reference/certificate/recorder.h"
#include "reference/ops/dropout.h"
#include "reference/ops/fold.h"
#include "reference/ops/matrix.h"
#include "reference/ops/sum.h"

namespace plumbline::reference {

// F(x) = fold(x; c) for activations and G(x) = fold(x; g) for their gradients.
struct Folds {
  Fold activation;
  Fold gradient;

  static Folds Of(const contract::ExactSpec& spec) {
    return {Fold::Triangle(static_cast<double>(spec.fold_bound)),
            Fold::Triangle(static_cast<double>(spec.gradient_fold_bound))};
  }
};

struct StepContext {
  const contract::ExactSpec& spec;
  const Folds& folds;
  uint64_t seed = 0;
  int64_t step = 0;  // 0 in the first step
  Recorder& recorder;

  // F(x) and G(x), recorded.
  Matrix F(const Matrix& x, const Place& place) const { return Folded(folds.activation, x, place); }
  Matrix G(const Matrix& x, const Place& place) const { return Folded(folds.gradient, x, place); }

  // S(z), the slope of F at z. Its argument was recorded when it was folded.
  Matrix S(const Matrix& z) const { return folds.activation.Slope(z); }

  // The value of a sum that makes an activation or the gradient of one, recorded.
  Matrix Activation(const Sum& sum, const Place& place) const {
    recorder.ActivationSum(sum, place);
    return sum.value;
  }

  // The mask of drop(), or none where dropout is off.   [tokens, width]
  std::optional<Matrix> Mask(contract::Site site, int64_t layer, int64_t tokens) const {
    if (!spec.dropout) return std::nullopt;
    return DropoutMask(seed, site, step, layer, tokens, spec.width);
  }

 private:
  Matrix Folded(const Fold& fold, const Matrix& x, const Place& place) const {
    recorder.FoldInput(x, fold, place);
    return fold.Value(x);
  }
};

}  // namespace plumbline::reference
