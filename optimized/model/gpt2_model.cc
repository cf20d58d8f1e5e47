// SPDX-License-Identifier: Apache-2.0
// See gpt2_model.h. Every activation that backward needs has memory of its own, taken when the model is built.
#include "optimized/model/gpt2_model.h"

#include <vector>

#include "kernels/embedding/embedding.h"
#include "optimized/backend/storage_types.h"
#include "optimized/model/gpt2_attention.h"
#include "optimized/model/gpt2_layer.h"
#include "optimized/model/gpt2_mlp.h"
#include "optimized/model/norm.h"
#include "optimized/model/real_head.h"
#include "optimized/model/real_outline.h"

namespace plumbline::optimized {
namespace {

// Canonical indices (docs/semantics.md, "Family gpt2").
constexpr int64_t kEmbed = 0;
constexpr int64_t kPos = 1;
constexpr int64_t kParametersOfBranch = 6;
constexpr int64_t FirstOfLayer(int64_t layer) { return 2 + 2 * kParametersOfBranch * layer; }
int64_t LastNorm(const contract::Gpt2Spec& spec) { return FirstOfLayer(spec.layers); }
int64_t HeadMatrix(const contract::Gpt2Spec& spec) { return spec.tied_head ? kEmbed : LastNorm(spec) + 2; }
int64_t Unused(const contract::Gpt2Spec& spec) { return LastNorm(spec) + (spec.tied_head ? 2 : 3); }

template <typename T>
class Gpt2Model final : public Model {
 public:
  Gpt2Model(const contract::Gpt2Spec& spec, const RealSizes& sizes, const ParameterMemory& memory, Backend& backend)
      : spec_(spec),
        sizes_(sizes),
        memory_(memory),
        parameters_(MakeParameters<T>(spec, memory)),
        arena_(backend),
        scratch_(sizes_, arena_),
        drop_embedding_(sizes_, contract::Site::kDropoutEmbedding, 0, DroppedTensor::kStream, arena_),
        head_(sizes_, Norm<T>(sizes_, parameters_[LastNorm(spec)], parameters_[LastNorm(spec) + 1], arena_),
              parameters_[HeadMatrix(spec)], spec.tied_head, backend, arena_),
        dx_mtd_(arena_.Take<T>(sizes.stream_elems())) {
    attention_.reserve(sizes.spec.layers);
    mlp_.reserve(sizes.spec.layers);
    for (int64_t layer = 0; layer < sizes.spec.layers; ++layer) {
      const auto branch = [&](int64_t index) {
        return std::span(parameters_).subspan(FirstOfLayer(layer) + index * kParametersOfBranch, kParametersOfBranch);
      };
      attention_.emplace_back(sizes_, layer, branch(0), backend, scratch_, arena_);
      mlp_.emplace_back(sizes_, layer, branch(1), backend, scratch_, arena_);
    }
    for (int64_t i = 0; i < 2 * sizes.spec.layers + 1; ++i) {
      stream_mtd_.push_back(arena_.Take<T>(sizes.stream_elems()));
    }
  }

  void Forward(const MicroBatch& micro_batch) override {
    micro_batch_ = micro_batch;
    memory_.BeforeUse(kEmbeddingUnit);
    kernels::EmbeddingForward<T>(EmbeddingSizes(), micro_batch.tokens, parameters_[kEmbed].weight(),
                                 parameters_[kPos].weight(), stream_mtd_[0]);
    drop_embedding_.Draw(micro_batch);
    drop_embedding_.Apply(stream_mtd_[0]);
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
    return head_.Loss(micro_batch_, inverse_tokens, loss_scale);
  }

  void Backward(std::span<const WriteMode> modes, const GradientReady& ready) override {
    const GradientWrites writes{modes, ready};
    if (sizes_.spec.unused) {
      writes.Begin(parameters_[Unused(spec_)]);
      writes.Ready(parameters_[Unused(spec_)]);
    }
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
    drop_embedding_.Apply(dx_mtd_);
    EmbeddingBackward(writes);
  }

 private:
  void EmbeddingBackward(const GradientWrites& writes) {
    const Parameter<T>& pos = parameters_[kPos];
    if (!pos.is_frozen()) {
      writes.Begin(pos);
      kernels::PositionBackward<T>(EmbeddingSizes(), dx_mtd_, pos.gradient());
      writes.Ready(pos);
    }
    const Parameter<T>& embed = parameters_[kEmbed];
    if (!embed.is_frozen()) {
      // A tied head has written its share of this micro-batch: it is added to.
      if (!spec_.tied_head) writes.Begin(embed);
      kernels::EmbeddingBackward<T>(EmbeddingSizes(), micro_batch_.tokens, dx_mtd_, embed.gradient());
      writes.Ready(embed);
    }
  }

  kernels::EmbeddingSizes EmbeddingSizes() const {
    return {sizes_.tokens(), sizes_.spec.positions, sizes_.spec.width, sizes_.spec.vocab};
  }

  const contract::Gpt2Spec spec_;
  const RealSizes sizes_;
  const ParameterMemory& memory_;
  const std::vector<Parameter<T>> parameters_;
  Arena arena_;
  Gpt2Scratch<T> scratch_;
  Dropout drop_embedding_;
  RealHead<T, Norm> head_;
  std::vector<Gpt2Attention<T>> attention_;
  std::vector<Gpt2Mlp<T>> mlp_;
  std::vector<std::span<T>> stream_mtd_;  // before each branch, and the last one
  std::span<T> dx_mtd_;
  MicroBatch micro_batch_;
};

}  // namespace

ModelOutline Gpt2Outline(const contract::Gpt2Spec& spec) {
  DecoderReads reads{{kEmbed, kPos},
                     spec.layers,
                     FirstOfLayer(0),
                     2 * kParametersOfBranch,
                     {LastNorm(spec), LastNorm(spec) + 1, HeadMatrix(spec)},
                     {}};
  if (spec.unused) reads.unused = Unused(spec);
  return OutlineOf(reads);
}

std::unique_ptr<Model> MakeGpt2Model(const contract::Gpt2Spec& spec, contract::DType storage, uint64_t seed,
                                     int64_t samples, const ParameterMemory& memory, Backend& backend) {
  contract::Validate(spec);
  const RealSizes sizes(spec, seed, samples);
  return VisitStorage(storage, [&](auto type) -> std::unique_ptr<Model> {
    return std::make_unique<Gpt2Model<decltype(type)>>(spec, sizes, memory, backend);
  });
}

}  // namespace plumbline::optimized
