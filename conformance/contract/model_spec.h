// SPDX-License-Identifier: Apache-2.0
// What is trained: the family's sizes and its parameters, with canonical names, shapes and order.
// Names and shapes only; no arithmetic of the model. Source: docs/exact-family.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace plumbline::contract {

// Family `exact`. Sizes are >= 1; heads divides width, kv_heads divides heads.
struct ExactSpec {
  int64_t layers = 0;
  int64_t width = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t positions = 0;  // tokens of a sample
  int64_t hidden = 0;
  int64_t vocab = 0;
  int64_t weight_bound = 1;         // w
  int64_t fold_bound = 2;           // c
  int64_t gradient_fold_bound = 4;  // g
  bool dropout = false;

  int64_t head_width() const { return width / heads; }
  int64_t kv_width() const { return head_width() * kv_heads; }
  // 8(2w + 1), the modulus of the master weight.
  int64_t master_modulus() const { return 8 * (2 * weight_bound + 1); }

  friend bool operator==(const ExactSpec&, const ExactSpec&) = default;
};

// Family `gpt2` (docs/semantics.md). Sizes are >= 1; heads divides width; 0 <= dropout < 1; 0 < norm_epsilon,
// initializer_range < 1.
struct Gpt2Spec {
  int64_t layers = 0;
  int64_t width = 0;
  int64_t heads = 0;
  int64_t positions = 0;
  int64_t hidden = 0;
  int64_t vocab = 0;
  double dropout = 0;
  bool tied_head = true;
  double norm_epsilon = 1e-5;
  double initializer_range = 0.02;  // standard deviation of the initial matrices; engines are given the weights
  bool unused = false;              // a parameter that takes part in nothing
  std::vector<std::string> frozen;  // names of parameters without gradient, state and update

  int64_t head_width() const { return width / heads; }

  friend bool operator==(const Gpt2Spec&, const Gpt2Spec&) = default;
};

// One of the families.
class ModelSpec {
 public:
  ModelSpec() = default;
  ModelSpec(ExactSpec spec) : spec_(std::move(spec)) {}  // NOLINT: a family is a model
  ModelSpec(Gpt2Spec spec) : spec_(std::move(spec)) {}   // NOLINT

  bool is_exact() const { return std::holds_alternative<ExactSpec>(spec_); }
  std::string_view family() const { return is_exact() ? "exact" : "gpt2"; }

  // Of the other family: Internal.
  const ExactSpec& exact() const;
  ExactSpec& exact();
  const Gpt2Spec& gpt2() const;
  Gpt2Spec& gpt2();

  int64_t positions() const;
  int64_t vocab() const;

  friend bool operator==(const ModelSpec&, const ModelSpec&) = default;

 private:
  std::variant<ExactSpec, Gpt2Spec> spec_;
};

// What clipping by units takes the norms of: a whole vector, each row of an embedding or a head, each column of
// another matrix (docs/semantics.md, "Clipping").
enum class UnitShape { kWhole, kRows, kColumns };

// A matrix [rows, cols], row-major; for a projection rows = in, cols = out. A vector has rows = 1.
struct ParameterSpec {
  std::string name;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t tensor_id = 0;
  bool is_vector = false;
  bool frozen = false;
  UnitShape units = UnitShape::kWhole;

  int64_t num_units() const { return units == UnitShape::kWhole ? 1 : units == UnitShape::kRows ? rows : cols; }

  int64_t numel() const { return rows * cols; }
  std::vector<int64_t> shape() const {
    return is_vector ? std::vector<int64_t>{cols} : std::vector<int64_t>{rows, cols};
  }
};

// Throws InvalidArgument naming the field, its value and what is allowed.
void Validate(const ModelSpec& spec);

// All parameters in canonical order; tensor_id is the position.
std::vector<ParameterSpec> Parameters(const ModelSpec& spec);

}  // namespace plumbline::contract
