// SPDX-License-Identifier: Apache-2.0
// What docs/semantics.md says about parts of family llama, and central differences cannot see.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <vector>

#include "conformance/contract/model_spec.h"
#include "reference/llama/model.h"
#include "reference/ops/block.h"
#include "reference/testing/small_llama.h"

namespace plumbline::reference::llama {
namespace {

const std::vector<int64_t> kWhole = {5, 5, 5};
const std::vector<int64_t> kUnequal = {3, 5, 1};

ModelTape Forward(const contract::LlamaSpec& spec, const ModelTensors& weights, const StepBatch& batch) {
  return ModelForward({spec, 5, 3}, weights, batch);
}

double Loss(const contract::LlamaSpec& spec, const ModelTensors& weights, const StepBatch& batch) {
  return Forward(spec, weights, batch).loss.loss;
}

// Element by element, by no op of the engine.
std::complex<double> PairOfProduct(const Matrix& h, int64_t row, const Matrix& w, int64_t first, int64_t second) {
  double real = 0, imaginary = 0;
  for (int64_t c = 0; c < h.cols(); ++c) {
    real += h(row, c) * w(c, first);
    imaginary += h(row, c) * w(c, second);
  }
  return {real, imaginary};
}

TEST(Conventions, ConsecutiveQueryHeadsShareAKeyValueHead) {
  const contract::LlamaSpec spec = SmallLlama();
  ModelTensors weights = RandomLlamaWeights(spec);
  const int64_t head_width = spec.head_width();
  // Without values in the second key/value head, floor(i · 2 / 4) = 1 leaves nothing to query heads 2 and 3; with
  // i mod 2 it would be 1 and 3.
  Put(Matrix(spec.width, head_width), {0, head_width, spec.width, head_width}, weights.layers[0].v);
  const Matrix o = Forward(spec, weights, LlamaBatch(spec, kWhole)).attention[0].o;
  for (int64_t n = 0; n < o.rows(); ++n)
    for (int64_t c = 0; c < spec.width; ++c)
      EXPECT_EQ(o(n, c) == 0, c / head_width >= 2) << "token " << n << ", channel " << c;
}

TEST(Conventions, TheSharedHeadIsTheSameForKeysAndValues) {
  const contract::LlamaSpec spec = SmallLlama();
  ModelTensors weights = RandomLlamaWeights(spec);
  const StepBatch batch = LlamaBatch(spec, kWhole);
  const Matrix before = Forward(spec, weights, batch).attention[0].o;
  const int64_t head_width = spec.head_width();
  Put(Matrix(spec.width, head_width), {0, 0, spec.width, head_width}, weights.layers[0].k);
  const Matrix after = Forward(spec, weights, batch).attention[0].o;
  // Position 0 sees one key only, whatever it is.
  for (int64_t n = 1; n < spec.positions; ++n)
    for (int64_t c = 0; c < spec.width; ++c)
      EXPECT_EQ(before(n, c) == after(n, c), c / head_width >= 2) << "token " << n << ", channel " << c;
}

TEST(Conventions, QueriesAndKeysAreTurnedInPairsHalfAHeadApartFromPositionZeroOfEachSample) {
  const contract::LlamaSpec spec = SmallLlama();
  const ModelTensors weights = RandomLlamaWeights(spec);
  const AttentionTape tape = Forward(spec, weights, LlamaBatch(spec, kWhole)).attention[1];
  const Matrix& h = tape.norm.y;
  constexpr int64_t kSample = 2, kHead = 3, kKvHead = 1;
  const HeadTape& head = tape.heads[kSample * 4 + kHead];
  for (int64_t t = 0; t < spec.positions; ++t) {
    for (int64_t i = 0; i < 2; ++i) {
      // θ^(−2i/D) is 1 and 100^(−1/2).
      const std::complex<double> turn = std::polar(1.0, static_cast<double>(t) * (i == 0 ? 1.0 : 0.1));
      const int64_t row = kSample * spec.positions + t;
      const auto q = turn * PairOfProduct(h, row, weights.layers[1].q, 4 * kHead + i, 4 * kHead + i + 2);
      const auto k = turn * PairOfProduct(h, row, weights.layers[1].k, 4 * kKvHead + i, 4 * kKvHead + i + 2);
      EXPECT_NEAR(head.q(t, i), q.real(), 1e-13);
      EXPECT_NEAR(head.q(t, i + 2), q.imag(), 1e-13);
      EXPECT_NEAR(head.k(t, i), k.real(), 1e-13);
      EXPECT_NEAR(head.k(t, i + 2), k.imag(), 1e-13);
      const auto v = PairOfProduct(h, row, weights.layers[1].v, 4 * kKvHead + i, 4 * kKvHead + i + 2);
      EXPECT_NEAR(head.v(t, i), v.real(), 1e-13) << "values are not turned";
      EXPECT_NEAR(head.v(t, i + 2), v.imag(), 1e-13);
    }
  }
}

// With the first key/value head and its query heads in the place of the second nothing changes, if heads are contiguous
// blocks of channels and groups are contiguous heads.
TEST(Conventions, GroupsOfHeadsMayChangePlaces) {
  const contract::LlamaSpec spec = SmallLlama();
  const ModelTensors weights = RandomLlamaWeights(spec);
  ModelTensors swapped = weights;
  const auto swap_halves = [](Matrix& matrix, bool of_rows) {
    const int64_t rows = of_rows ? matrix.rows() / 2 : matrix.rows();
    const int64_t cols = of_rows ? matrix.cols() : matrix.cols() / 2;
    const Block first{0, 0, rows, cols};
    const Block second{of_rows ? rows : 0, of_rows ? 0 : cols, rows, cols};
    const Matrix before = matrix;
    Put(Take(before, first), second, matrix);
    Put(Take(before, second), first, matrix);
  };
  for (LayerTensors& layer : swapped.layers) {
    for (Matrix* matrix : {&layer.q, &layer.k, &layer.v}) swap_halves(*matrix, false);
    swap_halves(layer.out, true);
  }
  const StepBatch batch = LlamaBatch(spec, kWhole);
  EXPECT_NEAR(Loss(spec, swapped, batch), Loss(spec, weights, batch), 1e-12);
}

TEST(Conventions, NoTokenSeesALaterOneOrAnotherSample) {
  const contract::LlamaSpec spec = SmallLlama();
  const ModelTensors weights = RandomLlamaWeights(spec);
  StepBatch batch = LlamaBatch(spec, kWhole);
  batch.loss_weights.assign(batch.loss_weights.size(), 0);
  batch.loss_weights[7] = 1;  // position 2 of the second sample
  const double loss = Loss(spec, weights, batch);
  for (const size_t other : {size_t{8}, size_t{9}, size_t{0}, size_t{4}, size_t{10}}) {
    batch.tokens[other] = (batch.tokens[other] + 1) % spec.vocab;
    EXPECT_EQ(Loss(spec, weights, batch), loss) << other;
  }
  batch.tokens[6] = (batch.tokens[6] + 1) % spec.vocab;
  EXPECT_NE(Loss(spec, weights, batch), loss) << "a token without loss weight takes part in attention";
}

// The argument of model.h: what is computed at padding reaches nothing, to the bit.
TEST(Conventions, TokensInThePlaceOfPaddingChangeNothing) {
  contract::LlamaSpec spec = SmallLlama();
  spec.dropout = 0.3;
  const StepContext step{spec, 5, 3};
  const ModelTensors weights = RandomLlamaWeights(spec);
  const StepBatch batch = LlamaBatch(spec, kUnequal);
  StepBatch filled = LlamaBatch(spec, kWhole);
  filled.loss_weights = batch.loss_weights;
  ASSERT_NE(filled.tokens, batch.tokens);
  const ModelTape tape = ModelForward(step, weights, batch);
  const ModelTape filled_tape = ModelForward(step, weights, filled);
  EXPECT_NE(tape.norm.y, filled_tape.norm.y);
  EXPECT_EQ(tape.loss.loss, filled_tape.loss.loss);
  ModelTensors gradients = ModelBackward(step, weights, batch, tape);
  ModelTensors filled_gradients = ModelBackward(step, weights, filled, filled_tape);
  const std::vector<Matrix*> order = InCanonicalOrder(gradients);
  const std::vector<Matrix*> filled_order = InCanonicalOrder(filled_gradients);
  for (size_t i = 0; i < order.size(); ++i) EXPECT_EQ(*order[i], *filled_order[i]) << i;
}

}  // namespace
}  // namespace plumbline::reference::llama
