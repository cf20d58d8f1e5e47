// SPDX-License-Identifier: Apache-2.0
// See exact_model.h. Every activation that backward needs has memory of its own, taken when the model is built.
#include "optimized/model/exact_model.h"

#include <string>
#include <vector>

#include "kernels/embedding/embedding.h"
#include "optimized/model/attention.h"
#include "optimized/model/layer.h"
#include "optimized/model/mlp.h"
#include "optimized/model/tied_head.h"

namespace plumbline::optimized {
namespace {

// Canonical indices (docs/exact-family.md, "Parameters").
constexpr int64_t kEmbed = 0;
constexpr int64_t kPos = 1;
constexpr int64_t FirstOfLayer(int64_t layer) { return 2 + 6 * layer; }

// Units.
constexpr int64_t kEmbeddingUnit = 0;
constexpr int64_t LayerUnit(int64_t layer) { return 1 + layer; }
constexpr int64_t HeadUnit(int64_t layers) { return 1 + layers; }

template <typename T>
class ExactModel final : public Model {
 public:
  ExactModel(const ExactSizes& sizes, const ParameterMemory& memory, Backend& backend)
      : sizes_(sizes),
        memory_(memory),
        parameters_(MakeParameters(sizes.spec, memory)),
        arena_(backend),
        scratch_(sizes_, arena_),
        head_(sizes_, parameters_[kEmbed], backend, arena_),
        dx_mtd_(arena_.Take<T>(sizes.tokens() * sizes.spec.width)) {
    attention_.reserve(sizes.spec.layers);
    mlp_.reserve(sizes.spec.layers);
    for (int64_t layer = 0; layer < sizes.spec.layers; ++layer) {
      const Parameter<T>* p = &parameters_[FirstOfLayer(layer)];
      attention_.emplace_back(sizes_, layer, AttentionParameters<T>{p[0], p[1], p[2], p[3]}, backend, scratch_, arena_);
      mlp_.emplace_back(sizes_, layer, p[4], p[5], backend, scratch_, arena_);
    }
    for (int64_t i = 0; i < 2 * sizes.spec.layers + 1; ++i) {
      stream_mtd_.push_back(arena_.Take<T>(sizes.tokens() * sizes.spec.width));
    }
  }

  void Forward(const MicroBatch& micro_batch) override {
    micro_batch_ = micro_batch;
    memory_.BeforeUse(kEmbeddingUnit);
    kernels::EmbeddingForward<T>(EmbeddingSizes(), micro_batch.tokens, parameters_[kEmbed].weight(),
                                 parameters_[kPos].weight(), stream_mtd_[0]);
    memory_.AfterUse(kEmbeddingUnit);
    for (int64_t layer = 0; layer < sizes_.spec.layers; ++layer) {
      memory_.BeforeUse(LayerUnit(layer));
      attention_[layer].Forward(micro_batch, stream_mtd_[2 * layer], stream_mtd_[2 * layer + 1]);
      mlp_[layer].Forward(micro_batch, stream_mtd_[2 * layer + 1], stream_mtd_[2 * layer + 2]);
      memory_.AfterUse(LayerUnit(layer));
    }
    memory_.BeforeUse(HeadUnit(sizes_.spec.layers));
    head_.Forward(stream_mtd_.back());
    memory_.AfterUse(HeadUnit(sizes_.spec.layers));
  }

  double Loss(float inverse_tokens, float loss_scale) override {
    sizes_.loss_scale = loss_scale;  // for the folds of backward too
    return head_.Loss(micro_batch_, inverse_tokens);
  }

  void Backward(std::span<const WriteMode> modes, const GradientReady& ready) override {
    const GradientWrites writes{modes, ready};
    memory_.BeforeUse(HeadUnit(sizes_.spec.layers));
    head_.Backward(writes, stream_mtd_.back(), dx_mtd_);
    memory_.AfterUse(HeadUnit(sizes_.spec.layers));
    for (int64_t layer = sizes_.spec.layers; layer-- > 0;) {
      memory_.BeforeUse(LayerUnit(layer));
      mlp_[layer].Backward(writes, stream_mtd_[2 * layer + 1], dx_mtd_);
      attention_[layer].Backward(writes, stream_mtd_[2 * layer], dx_mtd_);
      memory_.AfterUse(LayerUnit(layer));
    }
    // From here on no weight is read.
    writes.Begin(parameters_[kPos]);
    kernels::PositionBackward<T>(EmbeddingSizes(), dx_mtd_, parameters_[kPos].gradient());
    ready(kPos);
    // Always added: the head has written its share of this micro-batch.
    kernels::EmbeddingBackward<T>(EmbeddingSizes(), micro_batch_.tokens, dx_mtd_, parameters_[kEmbed].gradient());
    ready(kEmbed);
  }

 private:
  static std::vector<Parameter<T>> MakeParameters(const contract::ExactSpec& spec, const ParameterMemory& memory) {
    std::vector<Parameter<T>> parameters;
    for (const contract::ParameterSpec& p : contract::Parameters(spec)) {
      parameters.push_back({p.tensor_id, &memory.weights.at(p.tensor_id), p.numel(), memory.gradients.at(p.tensor_id)});
    }
    return parameters;
  }

  kernels::EmbeddingSizes EmbeddingSizes() const {
    return {sizes_.tokens(), sizes_.spec.positions, sizes_.spec.width, sizes_.spec.vocab};
  }

  ExactSizes sizes_;
  const ParameterMemory& memory_;
  const std::vector<Parameter<T>> parameters_;
  Arena arena_;
  Scratch<T> scratch_;
  TiedHead<T> head_;
  std::vector<Attention<T>> attention_;
  std::vector<Mlp<T>> mlp_;
  std::vector<std::span<T>> stream_mtd_;  // before each branch, and the last one
  std::span<T> dx_mtd_;
  MicroBatch micro_batch_;
};

}  // namespace

ModelOutline ExactOutline(const contract::ExactSpec& spec) {
  ModelOutline outline;
  outline.units.push_back({kEmbed, kPos});
  for (int64_t layer = 0; layer < spec.layers; ++layer) {
    outline.units.emplace_back();
    for (int64_t i = 0; i < 6; ++i) outline.units.back().push_back(FirstOfLayer(layer) + i);
  }
  outline.units.push_back({kEmbed});
  for (int64_t unit = kEmbeddingUnit; unit <= HeadUnit(spec.layers); ++unit) outline.forward.push_back(unit);
  for (int64_t unit = HeadUnit(spec.layers); unit > kEmbeddingUnit; --unit) outline.backward.push_back(unit);
  return outline;
}

std::unique_ptr<Model> MakeExactModel(const contract::ExactSpec& spec, const ExactTraining& training,
                                      const ParameterMemory& memory, Backend& backend) {
  const ExactSizes sizes(spec, training.seed, training.samples);
  return VisitStorage(training.storage, [&](auto type) -> std::unique_ptr<Model> {
    return std::make_unique<ExactModel<decltype(type)>>(sizes, memory, backend);
  });
}

}  // namespace plumbline::optimized
