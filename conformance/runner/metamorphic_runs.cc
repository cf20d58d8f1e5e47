// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/metamorphic_runs.h"

#include <memory>
#include <utility>

#include "conformance/contract/batch_source.h"
#include "conformance/runner/metamorphic_batches.h"

namespace plumbline::conformance {
namespace {

using contract::Batches;
using contract::Case;

Case Variant(const Case& whole, const std::string& name) {
  Case variant = whole;
  variant.id += "/" + name;
  return variant;
}

TaskRun WithBatches(const Case& whole, const std::string& name, Batches batches) {
  return {Variant(whole, name), nullptr, std::nullopt, std::make_shared<const Batches>(std::move(batches))};
}

void AddPermuted(const Case& whole, const Batches& batches, MetamorphicRuns& made) {
  Batches permuted = PermutedBatches(batches, whole.config, whole.seed);
  if (!MovesBetweenMicroBatches(batches, permuted, whole.config)) {
    made.nothing_changed = "the micro-batches of some step hold the samples that they held";
  }
  made.runs.push_back(WithBatches(whole, "permuted", std::move(permuted)));
}

void AddRelabelled(const Case& whole, const Batches& batches, MetamorphicRuns& made) {
  Batches relabelled = RelabelledBatches(batches, whole.config);
  if (!MovesBetweenRanks(batches, relabelled, whole.config)) {
    made.nothing_changed = "the ranks of some step hold the samples that they held";
  }
  made.runs.push_back(WithBatches(whole, "relabelled", std::move(relabelled)));
}

void AddSplit(const Case& whole, const Batches& batches, MetamorphicRuns& made) {
  auto parts = SplitBatches(batches, whole.config, whole.model.is_exact(), whole.seed);
  if (!parts) {
    made.nothing_changed = "the batch has no two parts that ranks and micro-batches share unevenly";
    return;
  }
  made.runs.push_back(WithBatches(whole, "first", std::move((*parts)[0])));
  made.runs.push_back(WithBatches(whole, "second", std::move((*parts)[1])));
}

void AddScaled(const Case& whole, MetamorphicRuns& made) {
  made.exponents = RescalingOf(whole.model);
  Case scaled = Variant(whole, "scaled");
  scaled.model = RescaledModel(whole.model);
  RealStart start{contract::MakeInitialRealState(whole.model, whole.config, whole.seed)};
  Rescale(made.exponents, start.state);
  made.runs.push_back({std::move(scaled), std::make_shared<const RealStart>(std::move(start))});
}

void AddAccumulated(const Case& whole, MetamorphicRuns& made) {
  Case variant = Variant(whole, "accumulated");
  if (variant.config.micro_batch_size % 2 != 0) {
    made.nothing_changed = "the micro-batch cannot be halved";
    return;
  }
  variant.config.micro_batch_size /= 2;
  variant.config.accumulation_steps *= 2;
  made.runs.push_back({std::move(variant)});
}

void AddPadded(const Case& whole, const Batches& batches, MetamorphicRuns& made) {
  Batches padded = PaddedBatches(batches, whole.model.vocab());
  if (padded.tokens == batches.tokens) made.nothing_changed = "no sample has padding";
  made.runs.push_back(WithBatches(whole, "padded", std::move(padded)));
}

template <typename ShiftedBy>
void AddShifted(const Case& whole, const std::string& name, ShiftedBy shifted_by, MetamorphicRuns& made) {
  ShiftedStarts starts = shifted_by(whole.model, contract::MakeInitialRealState(whole.model, whole.config, whole.seed));
  made.shift = starts.shift;
  made.runs.front().start = std::make_shared<const RealStart>(RealStart{std::move(starts.whole)});
  made.runs.push_back({Variant(whole, name), std::make_shared<const RealStart>(RealStart{std::move(starts.shifted)})});
}

}  // namespace

MetamorphicRuns MakeMetamorphicRuns(MetamorphicRelation relation, const Case& whole, const Batches& batches) {
  MetamorphicRuns made;
  made.runs.push_back({whole});
  if (!whole.model.is_exact()) made.runs.front().spec.dump_steps = {whole.first_step};
  const Case spec = made.runs.front().spec;
  switch (relation) {
    case MetamorphicRelation::kPermuted:
      AddPermuted(spec, batches, made);
      break;
    case MetamorphicRelation::kRelabelled:
      AddRelabelled(spec, batches, made);
      break;
    case MetamorphicRelation::kSplit:
      AddSplit(spec, batches, made);
      break;
    case MetamorphicRelation::kScaled:
      AddScaled(spec, made);
      break;
    case MetamorphicRelation::kAccumulated:
      AddAccumulated(spec, made);
      break;
    case MetamorphicRelation::kShiftedLogits:
      AddShifted(spec, "shifted", ShiftedLogits, made);
      break;
    case MetamorphicRelation::kShiftedScores:
      AddShifted(spec, "shifted", ShiftedScores, made);
      break;
    case MetamorphicRelation::kPadded:
      AddPadded(spec, batches, made);
      break;
  }
  return made;
}

}  // namespace plumbline::conformance
