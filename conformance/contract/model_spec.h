// SPDX-License-Identifier: Apache-2.0
// What is trained: the family's sizes and its parameters, with canonical names, shapes and order.
// Names and shapes only; no arithmetic of the model. Source: docs/exact-family.md.
#pragma once

#include <cstdint>
#include <string>
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

// A matrix [rows, cols], row-major; for a projection rows = in, cols = out.
struct ParameterSpec {
  std::string name;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t tensor_id = 0;

  int64_t numel() const { return rows * cols; }
};

// Throws InvalidArgument naming the field, its value and what is allowed.
void Validate(const ExactSpec& spec);

// All parameters in canonical order; tensor_id is the position.
std::vector<ParameterSpec> Parameters(const ExactSpec& spec);

}  // namespace plumbline::contract
