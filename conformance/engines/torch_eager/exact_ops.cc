// SPDX-License-Identifier: Apache-2.0
// Implementation of exact_ops.h. at::remainder is the mathematical mod (its result has the sign of the divisor), for
// floating types as for int64; the tests hold it to that for negative values.
#include "conformance/engines/torch_eager/exact_ops.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/remainder.h>
#include <ATen/ops/where.h>
#include <torch/csrc/autograd/custom_function.h>

namespace plumbline::conformance::torch_eager {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// (x + bound) mod 4 bound, in wide.
at::Tensor FoldPhase(const at::Tensor& x, int64_t bound) {
  return at::remainder(x.to(WideType(x.scalar_type())) + bound, 4 * bound);
}

at::Tensor FoldValue(const at::Tensor& x, int64_t bound) {
  const at::Tensor phase = FoldPhase(x, bound);
  return at::where(phase <= 2 * bound, phase - bound, 3 * bound - phase).to(x.scalar_type());
}

at::Tensor FoldSlope(const at::Tensor& x, int64_t bound) {
  const at::Tensor one = at::ones_like(x);
  return at::where(FoldPhase(x, bound) < 2 * bound, one, -one);
}

struct FoldFunction : torch::autograd::Function<FoldFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, int64_t bound) {
    context->save_for_backward({x});
    context->saved_data["bound"] = bound;
    return FoldValue(x, bound);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradient) {
    const at::Tensor x = context->get_saved_variables()[0];
    return {gradient[0] * FoldSlope(x, context->saved_data["bound"].toInt()), at::Tensor()};
  }
};

struct GradientFoldFunction : torch::autograd::Function<GradientFoldFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, int64_t bound) {
    context->saved_data["bound"] = bound;
    return x;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradient) {
    return {FoldValue(gradient[0], context->saved_data["bound"].toInt()), at::Tensor()};
  }
};

struct LinearFunction : torch::autograd::Function<LinearFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight) {
    const at::Tensor stored_weight = weight.to(x.scalar_type());
    context->save_for_backward({x, stored_weight});
    return at::matmul(x, stored_weight);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradient) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor& dy = gradient[0];
    const at::ScalarType wide = WideType(x.scalar_type());
    const at::Tensor dweight = at::matmul(x.flatten(0, -2).to(wide).t(), dy.flatten(0, -2).to(wide));
    return {at::matmul(dy, saved[1].t()), dweight};
  }
};

// ((x + bound) mod (2 bound + 1)) - bound.
at::Tensor Wrap(const at::Tensor& x, int64_t bound) { return at::remainder(x + bound, 2 * bound + 1) - bound; }

}  // namespace

at::ScalarType WideType(at::ScalarType storage) { return storage == at::kDouble ? at::kDouble : at::kFloat; }

at::Tensor Fold(const at::Tensor& x, int64_t bound) { return FoldFunction::apply(x, bound); }

at::Tensor GradientFold(const at::Tensor& x, int64_t bound) { return GradientFoldFunction::apply(x, bound); }

at::Tensor Linear(const at::Tensor& x, const at::Tensor& weight) { return LinearFunction::apply(x, weight); }

std::pair<at::Tensor, at::Tensor> ModularMomentum(const at::Tensor& gradient, const at::Tensor& moment,
                                                  const at::Tensor& master, int64_t counter, int64_t modulus) {
  constexpr int64_t kMomentBound = 14;
  constexpr int64_t kMomentModulus = 2 * kMomentBound + 1;
  const at::Tensor new_moment =
      Wrap(moment + at::remainder(gradient, kMomentModulus) + counter % kMomentModulus, kMomentBound);
  return {new_moment, at::remainder(master - new_moment - counter % modulus, modulus)};
}

at::Tensor ModularSgd(const at::Tensor& gradient, const at::Tensor& master, int64_t modulus) {
  return at::remainder(master - at::remainder(gradient, modulus), modulus);
}

at::Tensor WorkingWeight(const at::Tensor& master, int64_t weight_bound) {
  return master.div(8, "floor") - weight_bound;
}

}  // namespace plumbline::conformance::torch_eager
