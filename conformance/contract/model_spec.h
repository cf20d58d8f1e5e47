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

// What the real families have in common (docs/semantics.md). Sizes are >= 1; heads divides width; 0 <= dropout < 1;
// 0 < norm_epsilon, initializer_range < 1.
struct RealSpec {
  int64_t layers = 0;
  int64_t width = 0;
  int64_t heads = 0;
  int64_t positions = 0;
  int64_t hidden = 0;
  int64_t vocab = 0;
  double dropout = 0;
  double norm_epsilon = 1e-5;
  double initializer_range = 0.02;  // standard deviation of the initial matrices; engines are given the weights
  bool unused = false;              // a parameter that takes part in nothing
  std::vector<std::string> frozen;  // names of parameters without gradient, state and update

  int64_t head_width() const { return width / heads; }

  friend bool operator==(const RealSpec&, const RealSpec&) = default;
};

// Family `gpt2`.
struct Gpt2Spec : RealSpec {
  bool tied_head = true;

  friend bool operator==(const Gpt2Spec&, const Gpt2Spec&) = default;
};

// Family `llama`. kv_heads divides heads; width / heads is even; rope_theta > 0. The head is not tied.
struct LlamaSpec : RealSpec {
  int64_t kv_heads = 0;
  double rope_theta = 10000;
  bool unequal_lengths = false;  // samples end before `positions`: batches have lengths

  int64_t kv_width() const { return head_width() * kv_heads; }

  friend bool operator==(const LlamaSpec&, const LlamaSpec&) = default;
};

enum class Family { kExact, kGpt2, kLlama };
inline constexpr std::string_view kFamilyNames[] = {"exact", "gpt2", "llama"};  // in the order of Family

// One of the families.
class ModelSpec {
 public:
  ModelSpec() = default;
  ModelSpec(ExactSpec spec) : spec_(std::move(spec)) {}  // NOLINT: a family is a model
  ModelSpec(Gpt2Spec spec) : spec_(std::move(spec)) {}   // NOLINT
  ModelSpec(LlamaSpec spec) : spec_(std::move(spec)) {}  // NOLINT

  Family kind() const { return static_cast<Family>(spec_.index()); }
  std::string_view family() const { return kFamilyNames[spec_.index()]; }
  bool is_exact() const { return kind() == Family::kExact; }

  // Of another family: Internal.
  const ExactSpec& exact() const;
  ExactSpec& exact();
  const Gpt2Spec& gpt2() const;
  Gpt2Spec& gpt2();
  const LlamaSpec& llama() const;
  LlamaSpec& llama();
  // Of gpt2 or llama.
  const RealSpec& real() const;
  RealSpec& real();

  int64_t layers() const;
  int64_t width() const;
  int64_t positions() const;
  int64_t vocab() const;
  bool has_dropout() const { return is_exact() ? exact().dropout : real().dropout > 0; }
  int64_t heads() const;
  int64_t kv_heads() const;  // those of the family, or heads()
  bool has_tied_head() const { return kind() == Family::kGpt2 && gpt2().tied_head; }
  bool has_unequal_lengths() const { return kind() == Family::kLlama && llama().unequal_lengths; }

  friend bool operator==(const ModelSpec&, const ModelSpec&) = default;

 private:
  std::variant<ExactSpec, Gpt2Spec, LlamaSpec> spec_;  // in the order of Family
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
  int64_t layer = kNoLayer;  // l of `layers.l.…`

  static constexpr int64_t kNoLayer = -1;

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
