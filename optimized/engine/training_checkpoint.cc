// SPDX-License-Identifier: Apache-2.0
// See training_checkpoint.h. Working weights are saved too, since how an optimizer makes them from master weights is
// its own business.
#include "optimized/engine/training_checkpoint.h"

#include <algorithm>
#include <string>
#include <vector>

#include "conformance/contract/strict_json.h"
#include "optimized/checkpoint/checkpoint.h"

namespace plumbline::optimized {
namespace {

Buffer AsBuffer(std::span<float> values) {
  return {values.data(), static_cast<int64_t>(values.size()), contract::DType::kF32};
}

std::vector<CheckpointSlice> Slices(const Training& training) {
  std::vector<CheckpointSlice> slices;
  for (const ShardSlice& slice : training.shard.slices) {
    const std::string place = "/" + training.data->parameters[slice.parameter].name + "@" + std::to_string(slice.begin);
    slices.push_back({"master" + place, AsBuffer(training.optimizer->Master(slice))});
    if (training.optimizer->has_moment()) {
      slices.push_back({"moment" + place, AsBuffer(training.optimizer->Moment(slice))});
    }
    if (training.optimizer->has_second_moment()) {
      slices.push_back({"second_moment" + place, AsBuffer(training.optimizer->SecondMoment(slice))});
    }
    slices.push_back({"weight" + place, training.weights->Updated(slice)});
  }
  for (const WeightSlice& slice : training.weights->Frozen()) {
    slices.push_back({"weight/" + training.data->parameters[slice.parameter].name + "@0", slice.values});
  }
  return slices;
}

std::string LlamaSizesText(const contract::LlamaSpec& spec) {
  return ", kv_heads " + std::to_string(spec.kv_heads) + ", rope_theta " + contract::JsonNumber(spec.rope_theta) +
         (spec.unequal_lengths ? ", unequal_lengths" : "");
}

// What training depends on and shapes do not tell.
std::string SizesText(const contract::ModelSpec& model) {
  if (model.is_exact()) {
    const contract::ExactSpec& spec = model.exact();
    return "exact, heads " + std::to_string(spec.heads) + ", weight_bound " + std::to_string(spec.weight_bound) +
           ", fold_bound " + std::to_string(spec.fold_bound) + ", gradient_fold_bound " +
           std::to_string(spec.gradient_fold_bound) + (spec.dropout ? ", dropout" : "") + "\n";
  }
  const contract::RealSpec& spec = model.real();
  return std::string(model.family()) + ", heads " + std::to_string(spec.heads) + ", dropout " +
         contract::JsonNumber(spec.dropout) + ", norm_epsilon " + contract::JsonNumber(spec.norm_epsilon) +
         (model.kind() == contract::Family::kLlama ? LlamaSizesText(model.llama()) : "") + "\n";
}

// Whether a stage is written once or for each layer makes no difference.
void WriteOneStageOnce(contract::RunConfig& config) {
  const bool is_one = std::ranges::all_of(config.layer_stages, [&](int64_t own) { return own == config.zero_stage; });
  if (is_one) config.layer_stages.clear();
}

CheckpointIdentity Identity(const contract::CaseData& data) {
  contract::RunConfig config = data.spec.config;
  WriteOneStageOnce(config);
  if (data.spec.model.is_exact()) config.loss_scale = 1;  // no number that is saved depends on it
  CheckpointIdentity identity{contract::ToJson(config), SizesText(data.spec.model), data.spec.seed};
  for (const contract::ParameterSpec& parameter : data.parameters) {
    identity.model += parameter.name + " [" + std::to_string(parameter.rows) + ", " + std::to_string(parameter.cols) +
                      "]" + (parameter.frozen ? " frozen" : "") + "\n";
  }
  return identity;
}

}  // namespace

void SaveTraining(Training& training, int64_t finished_steps, const std::filesystem::path& folder, FileSystem& files) {
  SaveCheckpoint(folder, {finished_steps, training.num_updates, training.norm_history, training.loss_scaler},
                 Identity(*training.data), Slices(training), *training.communicator, training.timeout, files);
}

int64_t ResumeTraining(Training& training, const std::filesystem::path& folder, FileSystem& files) {
  const Communicator& communicator = *training.communicator;
  const TrainingProgress progress = LoadCheckpoint(folder, Identity(*training.data), Slices(training),
                                                   communicator.rank(), communicator.size(), files);
  training.num_updates = progress.num_updates;
  training.norm_history = progress.norm_history;
  training.loss_scaler = progress.loss_scaler;
  training.weights->Publish();
  return progress.finished_steps;
}

}  // namespace plumbline::optimized
