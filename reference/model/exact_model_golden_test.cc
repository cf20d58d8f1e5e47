// SPDX-License-Identifier: Apache-2.0
// The model with all its folds against a second derivation that shares nothing with it: the forward lines of
// docs/exact-family.md in scalar integers on a tape, and reverse accumulation over it. G stands where the document puts
// it, on the complete gradient of a scalar. Loss and every gradient element must be equal.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "conformance/contract/random_stream.h"
#include "reference/model/exact_model.h"
#include "reference/testing/random_matrix.h"

namespace plumbline::reference {
namespace {

// fold by walking |x| steps from fold(0) = 0; the wave is odd.
int64_t WalkedFold(int64_t x, int64_t b) {
  int64_t position = 0;
  int64_t direction = 1;
  for (int64_t i = 0; i < std::abs(x); ++i) {
    position += direction;
    if (std::abs(position) == b) direction = -direction;
  }
  return x < 0 ? -position : position;
}

// Scalars in the order of their making, with the partial derivatives by which each was made.
class Tape {
 public:
  using Var = size_t;

  Var Leaf(int64_t value) { return Make(value, {}); }
  Var Sum(const std::vector<Var>& terms) {
    Node node;
    for (const Var term : terms) {
      node.value += nodes_[term].value;
      node.parents.push_back({term, 1});
    }
    nodes_.push_back(node);
    return nodes_.size() - 1;
  }
  Var Product(Var a, Var b) { return Make(Value(a) * Value(b), {{a, Value(b)}, {b, Value(a)}}); }
  Var Scaled(Var a, int64_t factor) { return Make(Value(a) * factor, {{a, factor}}); }
  Var Positive(Var a) { return Value(a) > 0 ? Make(Value(a), {{a, 1}}) : Leaf(0); }
  Var Folded(Var a, int64_t b) {
    const int64_t value = WalkedFold(Value(a), b);
    return Make(value, {{a, WalkedFold(Value(a) + 1, b) - value}});
  }
  // a, whose complete gradient is folded on its way back.
  Var GradientFolded(Var a, int64_t b) {
    const Var var = Make(Value(a), {{a, 1}});
    nodes_[var].gradient_fold = b;
    return var;
  }

  int64_t Value(Var a) const { return nodes_[a].value; }
  int64_t Gradient(Var a) const { return nodes_[a].gradient; }

  void Backward(Var of) {
    nodes_[of].gradient = 1;
    for (size_t i = nodes_.size(); i-- > 0;) {
      Node& node = nodes_[i];
      if (node.gradient_fold > 0) node.gradient = WalkedFold(node.gradient, node.gradient_fold);
      for (const auto& [parent, derivative] : node.parents) nodes_[parent].gradient += derivative * node.gradient;
    }
  }

 private:
  struct Node {
    int64_t value = 0;
    int64_t gradient = 0;
    int64_t gradient_fold = 0;
    std::vector<std::pair<Var, int64_t>> parents;
  };
  Var Make(int64_t value, std::vector<std::pair<Var, int64_t>> parents) {
    nodes_.push_back({value, 0, 0, std::move(parents)});
    return nodes_.size() - 1;
  }
  std::vector<Node> nodes_;
};

using Var = Tape::Var;
using Vector = std::vector<Var>;

// The forward of the document for one sample after the other, scalar by scalar.
class ScalarModel {
 public:
  ScalarModel(const contract::ExactSpec& spec, uint64_t seed, int64_t step) : spec_(spec), seed_(seed), step_(step) {}

  // parameters[id][row-major index]
  std::vector<Vector> parameters;
  Tape tape;

  Var Loss(const StepBatch& batch) {
    int64_t num_weighted = 0;
    for (const double u : batch.loss_weights) num_weighted += u != 0 ? 1 : 0;
    Vector margins;
    const auto num_samples = static_cast<int64_t>(batch.tokens.size()) / spec_.positions;
    for (int64_t sample = 0; sample < num_samples; ++sample) {
      const std::vector<Vector> h = Sample(batch, sample);
      for (int64_t s = 0; s < spec_.positions; ++s) {
        const auto n = static_cast<size_t>(sample * spec_.positions + s);
        const int64_t share = static_cast<int64_t>(batch.loss_weights[n]) / num_weighted;
        margins.push_back(tape.Scaled(Margin(h[static_cast<size_t>(s)], batch.labels[n]), share));
      }
    }
    return tape.Sum(margins);
  }

 private:
  Var Parameter(int64_t id, int64_t row, int64_t col, int64_t cols) {
    return parameters[static_cast<size_t>(id)][static_cast<size_t>(row * cols + col)];
  }

  Vector F(const Vector& x) {
    Vector result;
    for (const Var a : x) result.push_back(tape.Folded(a, spec_.fold_bound));
    return result;
  }
  // Marks where a complete gradient is folded.
  Vector G(const Vector& x) {
    Vector result;
    for (const Var a : x) result.push_back(tape.GradientFolded(a, spec_.gradient_fold_bound));
    return result;
  }
  Vector Times(const Vector& x, int64_t id, int64_t cols) {
    Vector result;
    for (int64_t c = 0; c < cols; ++c) {
      Vector terms;
      for (size_t r = 0; r < x.size(); ++r)
        terms.push_back(tape.Product(x[r], Parameter(id, static_cast<int64_t>(r), c, cols)));
      result.push_back(tape.Sum(terms));
    }
    return result;
  }
  Var Dot(const Vector& a, const Vector& b, int64_t a_begin, int64_t b_begin, int64_t count) {
    Vector terms;
    for (int64_t c = 0; c < count; ++c)
      terms.push_back(tape.Product(a[static_cast<size_t>(a_begin + c)], b[static_cast<size_t>(b_begin + c)]));
    return tape.Sum(terms);
  }
  // x + drop(y)
  Vector Residual(const Vector& x, const Vector& y, contract::Site site, int64_t layer, int64_t n) {
    Vector result;
    for (size_t c = 0; c < x.size(); ++c) {
      const int64_t element = n * spec_.width + static_cast<int64_t>(c);
      const bool kept = (contract::Draw(seed_, site, step_, layer, element) >> 31) == 1;
      const int64_t factor = !spec_.dropout ? 1 : kept ? 2 : 0;
      result.push_back(tape.Sum({x[c], tape.Scaled(y[c], factor)}));
    }
    return result;
  }

  // Position s of one query head: the sum over t of a[s, t] v[t], folded.
  Vector Head(int64_t s, int64_t head, const std::vector<Vector>& q, const std::vector<Vector>& k,
              const std::vector<Vector>& v) {
    const int64_t width = spec_.width / spec_.heads;
    const int64_t queries_per_kv = spec_.heads / spec_.kv_heads;
    const int64_t kv_head = head / queries_per_kv;
    Vector a;
    for (int64_t t = 0; t <= s; ++t) {
      const Var score = Dot(q[static_cast<size_t>(s)], k[static_cast<size_t>(t)], head * width, kv_head * width, width);
      a.push_back(tape.GradientFolded(tape.Folded(score, spec_.fold_bound), spec_.gradient_fold_bound));
    }
    Vector out;
    for (int64_t c = 0; c < width; ++c) {
      Vector terms;
      for (size_t t = 0; t < a.size(); ++t)
        terms.push_back(tape.Product(a[t], v[t][static_cast<size_t>(kv_head * width + c)]));
      out.push_back(tape.Folded(tape.Sum(terms), spec_.fold_bound));
    }
    return out;
  }

  void Attention(int64_t sample, int64_t layer, std::vector<Vector>& x) {
    const int64_t id = 2 + 6 * layer;
    const int64_t e = spec_.width / spec_.heads * spec_.kv_heads;
    std::vector<Vector> q, k, v;
    for (Vector& row : x) {
      row = G(row);
      const Vector h = G(F(row));
      q.push_back(G(F(Times(h, id, spec_.width))));
      k.push_back(G(F(Times(h, id + 1, e))));
      v.push_back(G(F(Times(h, id + 2, e))));
    }
    for (int64_t s = 0; s < spec_.positions; ++s) {
      Vector o;
      for (int64_t head = 0; head < spec_.heads; ++head)
        for (const Var channel : Head(s, head, q, k, v)) o.push_back(channel);
      Vector& row = x[static_cast<size_t>(s)];
      const Vector y = F(Times(G(o), id + 3, spec_.width));
      row = Residual(row, y, contract::Site::kDropoutAttention, layer, sample * spec_.positions + s);
    }
  }

  void Mlp(int64_t sample, int64_t layer, std::vector<Vector>& x) {
    const int64_t id = 2 + 6 * layer;
    for (int64_t s = 0; s < spec_.positions; ++s) {
      Vector& row = x[static_cast<size_t>(s)];
      row = G(row);
      Vector r;
      for (const Var up : F(Times(G(F(row)), id + 4, spec_.hidden))) r.push_back(tape.Positive(up));
      const Vector y = F(Times(G(r), id + 5, spec_.width));
      row = Residual(row, y, contract::Site::kDropoutMlp, layer, sample * spec_.positions + s);
    }
  }

  // F of the last stream of a sample, [positions][width]
  std::vector<Vector> Sample(const StepBatch& batch, int64_t sample) {
    std::vector<Vector> x;
    for (int64_t s = 0; s < spec_.positions; ++s) {
      const int64_t token = batch.tokens[static_cast<size_t>(sample * spec_.positions + s)];
      Vector row;
      for (int64_t c = 0; c < spec_.width; ++c)
        row.push_back(tape.Sum({Parameter(0, token, c, spec_.width), Parameter(1, s, c, spec_.width)}));
      x.push_back(row);
    }
    for (int64_t layer = 0; layer < spec_.layers; ++layer) {
      Attention(sample, layer, x);
      Mlp(sample, layer, x);
    }
    for (Vector& row : x) row = G(F(row));
    return x;
  }

  // logit[best] − logit[label]
  Var Margin(const Vector& h, int64_t label) {
    Vector logits;
    for (int64_t token = 0; token < spec_.vocab; ++token)
      logits.push_back(Dot(h, parameters[0], 0, token * spec_.width, spec_.width));
    Var best = logits[0];
    for (const Var logit : logits)
      if (tape.Value(logit) > tape.Value(best)) best = logit;
    return tape.Sum({best, tape.Scaled(logits[static_cast<size_t>(label)], -1)});
  }

  contract::ExactSpec spec_;
  uint64_t seed_;
  int64_t step_;
};

StepBatch RandomBatch(const contract::ExactSpec& spec, int64_t samples) {
  constexpr double kWeights[] = {4, 0, 20, 4, 0, 20, 0};  // times N / 4
  StepBatch batch;
  double num_weighted = 0;
  for (int64_t n = 0; n < samples * spec.positions; ++n) {
    const auto draw = [&](int64_t stream) {
      return contract::Below(contract::Draw(3, contract::Site::kSampleStart, 0, stream, n), spec.vocab);
    };
    batch.tokens.push_back(draw(1));
    batch.labels.push_back(draw(2));
    batch.loss_weights.push_back(kWeights[n % 7]);
    num_weighted += batch.loss_weights.back() != 0 ? 1 : 0;
  }
  for (double& weight : batch.loss_weights) weight *= num_weighted / 4;
  return batch;
}

struct Golden {
  const char* name;
  contract::ExactSpec spec;
  int64_t samples;
};

class ExactModelGolden : public testing::TestWithParam<Golden> {};

TEST_P(ExactModelGolden, LossAndEveryGradientElementEqualTheScalarDerivation) {
  constexpr uint64_t kSeed = 13;
  constexpr int64_t kStep = 2;
  const contract::ExactSpec& spec = GetParam().spec;
  const StepBatch batch = RandomBatch(spec, GetParam().samples);
  const std::vector<contract::ParameterSpec> parameters = contract::Parameters(spec);

  ModelTensors<Matrix> weights;
  weights.layers.resize(static_cast<size_t>(spec.layers));
  const std::vector<Matrix*> weight_order = InCanonicalOrder(weights);
  ScalarModel scalar(spec, kSeed, kStep);
  for (size_t i = 0; i < parameters.size(); ++i) {
    *weight_order[i] =
        RandomIntegers(static_cast<int64_t>(i), parameters[i].rows, parameters[i].cols, spec.weight_bound);
    Vector& leaves = scalar.parameters.emplace_back();
    for (int64_t element = 0; element < parameters[i].numel(); ++element)
      leaves.push_back(scalar.tape.Leaf(static_cast<int64_t>((*weight_order[i])[element])));
  }
  const Var loss = scalar.Loss(batch);
  scalar.tape.Backward(loss);

  Recorder recorder;
  const Folds folds = Folds::Of(spec);
  const StepContext context{spec, folds, kSeed, kStep, recorder};
  const ModelTape tape = ModelForward(context, weights, batch);
  const ModelTensors<Sum> gradients = ModelBackward(context, weights, batch, tape);

  EXPECT_EQ(tape.loss.loss, static_cast<double>(scalar.tape.Value(loss)));
  const std::vector<const Sum*> gradient_order = InCanonicalOrder(gradients);
  for (size_t i = 0; i < parameters.size(); ++i) {
    int64_t nonzero = 0;
    for (int64_t element = 0; element < parameters[i].numel(); ++element) {
      const int64_t expected = scalar.tape.Gradient(scalar.parameters[i][static_cast<size_t>(element)]);
      EXPECT_EQ(gradient_order[i]->value[element], static_cast<double>(expected))
          << parameters[i].name << " " << element;
      nonzero += expected != 0 ? 1 : 0;
    }
    EXPECT_GE(4 * nonzero, parameters[i].numel()) << parameters[i].name << ": a gradient of zeros tests nothing";
  }
}

// layers, width, heads, kv_heads, positions, hidden, vocab, w, c, g, dropout
INSTANTIATE_TEST_SUITE_P(Sizes, ExactModelGolden,
                         testing::Values(Golden{"dense", {2, 6, 3, 3, 5, 7, 5, 1, 2, 4, false}, 3},
                                         Golden{"grouped_heads", {2, 8, 4, 2, 3, 11, 4, 1, 2, 4, false}, 4},
                                         Golden{"one_kv_head_and_dropout", {2, 6, 3, 1, 4, 5, 4, 1, 2, 4, true}, 4},
                                         Golden{"grouped_heads_and_dropout", {3, 12, 6, 2, 3, 5, 3, 1, 2, 4, true}, 5},
                                         Golden{"other_bounds", {2, 6, 2, 2, 4, 7, 5, 2, 3, 5, true}, 4},
                                         Golden{"one_position", {1, 5, 1, 1, 1, 7, 3, 1, 2, 4, false}, 14}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace plumbline::reference
