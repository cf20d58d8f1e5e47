// SPDX-License-Identifier: Apache-2.0
// See training_checkpoint.h. Working weights are saved too, since how an optimizer makes them from master weights is
// its own business.
#include "optimized/engine/training_checkpoint.h"

#include <string>
#include <vector>

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
  return slices;
}

CheckpointIdentity Identity(const contract::CaseData& data) {
  CheckpointIdentity identity{contract::ToJson(data.spec.config), "", data.spec.seed};
  for (const contract::ParameterSpec& parameter : data.parameters) {
    identity.model +=
        parameter.name + " [" + std::to_string(parameter.rows) + ", " + std::to_string(parameter.cols) + "]\n";
  }
  return identity;
}

}  // namespace

void SaveTraining(Training& training, int64_t finished_steps, const std::filesystem::path& folder, FileSystem& files) {
  SaveCheckpoint(folder, finished_steps, Identity(*training.data), Slices(training), *training.communicator,
                 training.timeout, files);
}

int64_t ResumeTraining(Training& training, const std::filesystem::path& folder, FileSystem& files) {
  const Communicator& communicator = *training.communicator;
  const int64_t finished_steps = LoadCheckpoint(folder, Identity(*training.data), Slices(training), communicator.rank(),
                                                communicator.size(), files);
  training.weights->Publish();
  return finished_steps;
}

}  // namespace plumbline::optimized
