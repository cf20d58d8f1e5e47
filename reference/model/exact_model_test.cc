// SPDX-License-Identifier: Apache-2.0
// The hand-written adjoint of the whole model against central differences, in real numbers. Two variants: all folds
// replaced by the identity, and activation folds in place (their slopes count) with the gradient's folds off, since G
// is no derivative. The best token and the sides of kinks are piecewise constant. The bound is derived per element: the
// truncation error of the difference of step h is a third of its distance to the difference of step 2h, and rounding is
// counted.
#include "reference/model/exact_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "reference/testing/random_matrix.h"

namespace plumbline::reference {
namespace {

struct Setting {
  contract::ExactSpec spec;
  bool activation_folds;
  double weight_scale;
};

std::string Describe(const Setting& setting) {
  const contract::ExactSpec& spec = setting.spec;
  return "layers " + std::to_string(spec.layers) + ", heads " + std::to_string(spec.heads) + "/" +
         std::to_string(spec.kv_heads) + (spec.dropout ? ", dropout" : "") +
         (setting.activation_folds ? ", folds" : ", no folds");
}

contract::ExactSpec Spec(int64_t layers, int64_t heads, int64_t kv_heads, bool dropout) {
  contract::ExactSpec spec;
  spec.layers = layers;
  spec.width = 2 * heads;
  spec.heads = heads;
  spec.kv_heads = kv_heads;
  spec.positions = 3;
  spec.hidden = 5;
  spec.vocab = 4;
  spec.dropout = dropout;
  return spec;
}

ModelTensors<Matrix> RealWeights(const contract::ExactSpec& spec, double scale) {
  ModelTensors<Matrix> weights;
  weights.layers.resize(static_cast<size_t>(spec.layers));
  const std::vector<contract::ParameterSpec> parameters = contract::Parameters(spec);
  const std::vector<Matrix*> order = InCanonicalOrder(weights);
  for (size_t i = 0; i < order.size(); ++i)
    *order[i] = RandomReals(static_cast<int64_t>(i), parameters[i].rows, parameters[i].cols, scale);
  return weights;
}

// Two samples; N = 4.
StepBatch TwoSamples() { return {{0, 3, 1, 2, 2, 0}, {3, 1, 2, 2, 0, 1}, {4, 0, 20, 4, 20, 0}}; }

class Model {
 public:
  explicit Model(const Setting& setting)
      : spec_(setting.spec),
        folds_{setting.activation_folds ? Fold::Triangle(static_cast<double>(spec_.fold_bound)) : Fold::Identity(),
               Fold::Identity()} {}

  double Loss(const ModelTensors<Matrix>& weights) { return ModelForward(Context(), weights, batch_).loss.loss; }

  ModelTensors<Sum> Gradient(const ModelTensors<Matrix>& weights) {
    const ModelTape tape = ModelForward(Context(), weights, batch_);
    return ModelBackward(Context(), weights, batch_, tape);
  }

 private:
  StepContext Context() { return {spec_, folds_, /*seed=*/5, /*step=*/2, recorder_}; }

  contract::ExactSpec spec_;
  Folds folds_;
  Recorder recorder_;
  StepBatch batch_ = TwoSamples();
};

// (loss(w + h) − loss(w − h)) / 2h for one element.
double CentralDifference(Model& model, ModelTensors<Matrix>& weights, double& element, double h) {
  const double middle = element;
  element = middle + h;
  const double above = model.Loss(weights);
  element = middle - h;
  const double below = model.Loss(weights);
  element = middle;
  return (above - below) / (2 * h);
}

class ExactModelGradient : public testing::TestWithParam<Setting> {};

// The largest absolute element of any gradient: how strongly the loss answers to a change of a value.
double Sensitivity(const ModelTensors<Sum>& gradients) {
  double largest = 0;
  for (const Sum* gradient : InCanonicalOrder(gradients))
    for (int64_t i = 0; i < gradient->value.numel(); ++i) largest = std::max(largest, std::abs(gradient->value[i]));
  return largest;
}

TEST_P(ExactModelGradient, IsTheDerivativeOfTheLossForEveryElementOfEveryParameter) {
  constexpr double kStep = 1.0 / (1 << 18);
  // A value near 1 is rounded by 2^-53, and the loss answers by its sensitivity; a few hundred values lie on the way.
  constexpr double kRoundings = 256;
  Model model(GetParam());
  ModelTensors<Matrix> weights = RealWeights(GetParam().spec, GetParam().weight_scale);
  const ModelTensors<Sum> gradients = model.Gradient(weights);
  const std::vector<const Sum*> gradient_order = InCanonicalOrder(gradients);
  const std::vector<Matrix*> weight_order = InCanonicalOrder(weights);
  const std::vector<contract::ParameterSpec> parameters = contract::Parameters(GetParam().spec);
  const double rounding = kRoundings * 0x1p-53 * (Sensitivity(gradients) + std::abs(model.Loss(weights))) / kStep;
  for (size_t i = 0; i < weight_order.size(); ++i) {
    double largest = 0;
    double largest_bound = 0;
    for (int64_t element = 0; element < weight_order[i]->numel(); ++element) {
      double& weight = (*weight_order[i])[element];
      const double near = CentralDifference(model, weights, weight, kStep);
      const double far = CentralDifference(model, weights, weight, 2 * kStep);
      const double bound = std::abs(far - near) + rounding;
      const double adjoint = gradient_order[i]->value[element];
      EXPECT_LE(std::abs(adjoint - near), bound)
          << parameters[i].name << " " << element << ": " << adjoint << ", " << near;
      largest = std::max(largest, std::abs(adjoint));
      largest_bound = std::max(largest_bound, bound);
    }
    EXPECT_LE(1e4 * largest_bound, largest)
        << parameters[i].name << ": the bound is as large as what it bounds (a kink?)";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Settings, ExactModelGradient,
    testing::Values(Setting{Spec(1, 1, 1, false), false, 0.9}, Setting{Spec(2, 2, 2, false), false, 0.9},
                    Setting{Spec(2, 4, 2, true), false, 0.7}, Setting{Spec(2, 3, 1, true), false, 0.7},
                    Setting{Spec(1, 1, 1, false), true, 2.5}, Setting{Spec(2, 2, 2, false), true, 1.3},
                    Setting{Spec(2, 4, 2, true), true, 1.2}, Setting{Spec(2, 3, 1, true), true, 1.2}),
    [](const auto& info) {
      std::string name = Describe(info.param);
      for (char& c : name)
        if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
      return name;
    });

}  // namespace
}  // namespace plumbline::reference
