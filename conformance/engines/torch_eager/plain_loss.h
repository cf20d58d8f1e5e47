// SPDX-License-Identifier: Apache-2.0
// The losses of the real families from docs/semantics.md by loops over doubles, for tests: they share no tensor library
// with the witness. Here is what the families have in common; a test transcribes the rest of its family in Logits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/contract/case_file.h"
#include "conformance/contract/random_stream.h"

namespace plumbline::conformance::torch_eager {

using Row = std::vector<double>;
using Rows = std::vector<Row>;  // one a position

class PlainLoss {
 public:
  explicit PlainLoss(const contract::CaseData& data) : data_(data), spec_(data.spec.model.real()) {}
  virtual ~PlainLoss() = default;

  // Of the global batch. Padding is never looked at.
  double Of(int64_t step) const;

 protected:
  // Of the tokens of sample b: one row each, [vocab].
  virtual Rows Logits(int64_t step, int64_t b) const = 0;

  double At(const std::string& name, int64_t row, int64_t col) const;
  // Rows of the embedding, one for each token of the sample.
  Rows Embedded(int64_t step, int64_t b) const;
  // x W, W [in, out].
  Rows Product(const Rows& x, const std::string& name, int64_t out) const;
  // x Wᵀ, W [out, in].
  Rows TransposedProduct(const Rows& x, const std::string& name, int64_t out) const;
  // Dropout at a site whose elements are channels of the residual stream.
  void Drop(Rows& x, contract::Site site, int64_t step, int64_t layer, int64_t b) const;
  // Causal attention with dropout: q has the spec's heads, k and v have kv_heads.
  Rows Attention(const Rows& q, const Rows& k, const Rows& v, int64_t kv_heads, int64_t step, int64_t layer,
                 int64_t b) const;
  static void Add(Rows& x, const Rows& y);

  const contract::CaseData& data_;
  const contract::RealSpec& spec_;

 private:
  double Kept(contract::Site site, int64_t step, int64_t layer, int64_t element) const;
};

// A case with weights ten times larger than GPT-2's, so that softmax and activations are far from linear.
contract::CaseData MakeSteepCase(const contract::ModelSpec& model, contract::DType storage, int64_t accumulation);

// The witness's loss of the global batch, with the case's weights.
double WitnessLoss(const contract::CaseData& data, int64_t step);

}  // namespace plumbline::conformance::torch_eager
