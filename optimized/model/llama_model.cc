// SPDX-License-Identifier: Apache-2.0
// See llama_model.h. Every activation that backward needs has memory of its own, taken when the model is built.
#include "optimized/model/llama_model.h"

#include <vector>

#include "kernels/embedding/embedding.h"
#include "optimized/backend/storage_types.h"
#include "optimized/model/length_cut.h"
#include "optimized/model/llama_attention.h"
#include "optimized/model/llama_layer.h"
#include "optimized/model/llama_mlp.h"
#include "optimized/model/real_head.h"
#include "optimized/model/real_outline.h"

namespace plumbline::optimized {
namespace {

// Canonical indices (docs/semantics.md, "Family llama").
constexpr int64_t kEmbed = 0;
constexpr int64_t kParametersOfAttention = 5;
constexpr int64_t kParametersOfMlp = 4;
constexpr int64_t kParametersOfLayer = kParametersOfAttention + kParametersOfMlp;
constexpr int64_t FirstOfLayer(int64_t layer) { return 1 + kParametersOfLayer * layer; }
int64_t LastNorm(const contract::RealSpec& spec) { return FirstOfLayer(spec.layers); }
int64_t HeadMatrix(const contract::RealSpec& spec) { return LastNorm(spec) + 1; }
int64_t Unused(const contract::RealSpec& spec) { return LastNorm(spec) + 2; }

template <typename T>
class LlamaModel final : public Model {
 public:
  LlamaModel(const contract::LlamaSpec& spec, const LlamaSizes& sizes, const ParameterMemory& memory, Backend& backend)
      : sizes_(sizes),
        memory_(memory),
        parameters_(MakeParameters<T>(spec, memory)),
        cut_(sizes.samples, spec.positions),
        arena_(backend),
        angles_(sizes_, arena_),
        scratch_(sizes_, arena_),
        drop_embedding_(sizes_, contract::Site::kDropoutEmbedding, 0, DroppedTensor::kStream, arena_),
        head_(sizes_, RmsNorm<T>(sizes_, parameters_[LastNorm(spec)], arena_), parameters_[HeadMatrix(spec)],
              /*is_tied=*/false, backend, arena_),
        dx_mtd_(arena_.Take<T>(sizes.stream_elems())) {
    attention_.reserve(spec.layers);
    mlp_.reserve(spec.layers);
    for (int64_t layer = 0; layer < spec.layers; ++layer) {
      const auto of_layer = std::span(parameters_).subspan(FirstOfLayer(layer), kParametersOfLayer);
      attention_.emplace_back(sizes_, layer, of_layer.first(kParametersOfAttention), angles_, backend, scratch_,
                              arena_);
      mlp_.emplace_back(sizes_, layer, of_layer.last(kParametersOfMlp), backend, scratch_, arena_);
    }
    for (int64_t i = 0; i < 2 * spec.layers + 1; ++i) stream_mtd_.push_back(arena_.Take<T>(sizes.stream_elems()));
  }

  void Forward(const MicroBatch& micro_batch) override {
    micro_batch_ = cut_.Cut(micro_batch);
    sizes_.positions = cut_.longest();
    memory_.BeforeUse(kEmbeddingUnit);
    kernels::EmbeddingLookup<T>(EmbeddingSizes(), micro_batch_.tokens, parameters_[kEmbed].weight(), Stream(0));
    drop_embedding_.Draw(micro_batch_);
    drop_embedding_.Apply(Stream(0));
    memory_.AfterUse(kEmbeddingUnit);
    for (int64_t layer = 0; layer < sizes_.spec.layers; ++layer) {
      memory_.BeforeUse(LayerUnit(layer));
      attention_[layer].Forward(micro_batch_, Stream(2 * layer), Stream(2 * layer + 1));
      mlp_[layer].Forward(micro_batch_, Stream(2 * layer + 1), Stream(2 * layer + 2));
      memory_.AfterUse(LayerUnit(layer));
    }
    memory_.BeforeUse(HeadUnit(sizes_.spec.layers));
    head_.Forward(Stream(2 * sizes_.spec.layers));
    memory_.AfterUse(HeadUnit(sizes_.spec.layers));
  }

  double Loss(float inverse_tokens, float loss_scale) override {
    return head_.Loss(micro_batch_, inverse_tokens, loss_scale);
  }

  void Backward(std::span<const WriteMode> modes, const GradientReady& ready) override {
    const GradientWrites writes{modes, ready};
    const std::span<T> dx_mtd = dx_mtd_.first(sizes_.stream_elems());
    if (sizes_.spec.unused) {
      writes.Begin(parameters_[Unused(sizes_.spec)]);
      writes.Ready(parameters_[Unused(sizes_.spec)]);
    }
    memory_.BeforeUse(HeadUnit(sizes_.spec.layers));
    head_.Backward(writes, Stream(2 * sizes_.spec.layers), dx_mtd);
    memory_.AfterUse(HeadUnit(sizes_.spec.layers));
    for (int64_t layer = sizes_.spec.layers; layer-- > 0;) {
      memory_.BeforeUse(LayerUnit(layer));
      mlp_[layer].Backward(writes, Stream(2 * layer + 1), dx_mtd);
      attention_[layer].Backward(writes, Stream(2 * layer), dx_mtd);
      memory_.AfterUse(LayerUnit(layer));
    }
    // From here on no weight is read.
    const Parameter<T>& embed = parameters_[kEmbed];
    if (embed.is_frozen()) return;
    drop_embedding_.Apply(dx_mtd);
    writes.Begin(embed);
    kernels::EmbeddingBackward<T>(EmbeddingSizes(), micro_batch_.tokens, dx_mtd, embed.gradient());
    writes.Ready(embed);
  }

 private:
  // Before each branch, and the last one: the part that the micro-batch uses.
  std::span<T> Stream(int64_t index) const { return stream_mtd_[index].first(sizes_.stream_elems()); }

  kernels::EmbeddingSizes EmbeddingSizes() const {
    return {sizes_.tokens(), sizes_.positions, sizes_.spec.width, sizes_.spec.vocab};
  }

  LlamaSizes sizes_;
  const ParameterMemory& memory_;
  const std::vector<Parameter<T>> parameters_;
  LengthCut cut_;
  Arena arena_;
  LlamaAngles angles_;
  LlamaScratch<T> scratch_;
  Dropout drop_embedding_;
  RealHead<T, RmsNorm> head_;
  std::vector<LlamaAttention<T>> attention_;
  std::vector<LlamaMlp<T>> mlp_;
  std::vector<std::span<T>> stream_mtd_;
  std::span<T> dx_mtd_;
  MicroBatch micro_batch_;  // as it was cut
};

}  // namespace

ModelOutline LlamaOutline(const contract::LlamaSpec& spec) {
  DecoderReads reads{{kEmbed}, spec.layers, FirstOfLayer(0), kParametersOfLayer, {LastNorm(spec), HeadMatrix(spec)},
                     {}};
  if (spec.unused) reads.unused = Unused(spec);
  return OutlineOf(reads);
}

std::unique_ptr<Model> MakeLlamaModel(const contract::LlamaSpec& spec, contract::DType storage, uint64_t seed,
                                      int64_t samples, const ParameterMemory& memory, Backend& backend) {
  contract::Validate(spec);
  const LlamaSizes sizes(spec, seed, samples);
  return VisitStorage(storage, [&](auto type) -> std::unique_ptr<Model> {
    return std::make_unique<LlamaModel<decltype(type)>>(spec, sizes, memory, backend);
  });
}

}  // namespace plumbline::optimized
