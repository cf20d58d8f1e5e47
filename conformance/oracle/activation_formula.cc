// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/activation_formula.h"

#include "conformance/contract/dtype.h"

namespace plumbline::conformance {
namespace {

constexpr int64_t kF32Bytes = 4;

// Letters as in the table: n tokens, s bytes of an element in storage type.
int64_t OfExact(const contract::ExactSpec& model, int64_t n, int64_t s) {
  const int64_t d = model.width;
  const int64_t e = model.kv_width();
  const int64_t f = model.hidden;
  const int64_t scores = model.heads * model.positions;  // of a token
  const int64_t scratch = s * n * (4 * d + scores + f) + kF32Bytes * n * d;
  const int64_t streams = s * n * d * (2 * model.layers + 2);
  const int64_t head = s * n * (d + 2 * model.vocab);
  const int64_t attention = s * n * (6 * d + 4 * e + 2 * scores);
  const int64_t mlp = s * n * (2 * d + 2 * f);
  const int64_t masks = model.dropout ? 2 * n * d : 0;
  return scratch + streams + head + model.layers * (attention + mlp + masks);
}

}  // namespace

int64_t ActivationBytes(const contract::ModelSpec& model, const contract::RunConfig& config) {
  return OfExact(model.exact(), config.micro_batch_size * model.positions(), contract::SizeBytes(config.storage));
}

}  // namespace plumbline::conformance
