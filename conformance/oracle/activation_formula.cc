// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/activation_formula.h"

#include <algorithm>

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

int64_t OfGpt2(const contract::Gpt2Spec& model, int64_t n, int64_t s) {
  const int64_t d = model.width;
  const int64_t f = model.hidden;
  const int64_t scores = model.heads * model.positions;  // of a token
  const int64_t row_statistics = 2 * kF32Bytes * n;      // mean and deviation
  const bool dropout = model.dropout > 0;
  const int64_t scratch = s * n * (9 * d + f + scores) + kF32Bytes * n * (scores + std::max(3 * d, f));
  const int64_t streams = s * n * d * (2 * model.layers + 2);
  const int64_t logits = kF32Bytes * n * model.vocab + (s < kF32Bytes ? s * n * model.vocab : 0);
  const int64_t head = 2 * s * n * d + row_statistics + logits;
  const int64_t attention = s * n * (5 * d + scores + (dropout ? scores : 0)) + row_statistics;
  const int64_t mlp = s * n * (d + 2 * f) + row_statistics;
  const int64_t masks = dropout ? n * d + model.layers * n * (scores + 2 * d) : 0;
  return scratch + streams + head + model.layers * (attention + mlp) + masks;
}

int64_t OfLlama(const contract::LlamaSpec& model, int64_t n, int64_t s) {
  const int64_t d = model.width;
  const int64_t e = model.kv_width();
  const int64_t f = model.hidden;
  const int64_t scores = model.heads * model.positions;  // of a token
  const int64_t row_statistics = kF32Bytes * n;          // deviation
  const bool dropout = model.dropout > 0;
  const int64_t scratch = s * n * (3 * d + 2 * e + 2 * f + scores) + kF32Bytes * n * (d + scores);
  const int64_t angles = kF32Bytes * model.positions * model.head_width();
  const int64_t streams = s * n * d * (2 * model.layers + 2);
  const int64_t logits = kF32Bytes * n * model.vocab + (s < kF32Bytes ? s * n * model.vocab : 0);
  const int64_t head = 2 * s * n * d + row_statistics + logits;
  const int64_t attention = s * n * (3 * d + 2 * e + scores + (dropout ? scores : 0)) + row_statistics;
  const int64_t mlp = s * n * (d + 3 * f) + row_statistics;
  const int64_t masks = dropout ? n * d + model.layers * n * (scores + 2 * d) : 0;
  return scratch + angles + streams + head + model.layers * (attention + mlp) + masks;
}

}  // namespace

int64_t ActivationBytes(const contract::ModelSpec& model, const contract::RunConfig& config) {
  const int64_t tokens = config.micro_batch_size * model.positions();
  const int64_t storage_bytes = contract::SizeBytes(config.storage);
  switch (model.kind()) {
    case contract::Family::kExact:
      return OfExact(model.exact(), tokens, storage_bytes);
    case contract::Family::kGpt2:
      return OfGpt2(model.gpt2(), tokens, storage_bytes);
    case contract::Family::kLlama:
      return OfLlama(model.llama(), tokens, storage_bytes);
  }
  return 0;
}

}  // namespace plumbline::conformance
