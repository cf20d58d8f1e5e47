// SPDX-License-Identifier: Apache-2.0
// See train_rank.h.
#include "optimized/engine/train_rank.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "conformance/contract/error.h"
#include "optimized/checkpoint/file_system.h"
#include "optimized/engine/parallelize.h"
#include "optimized/engine/trace_recorder.h"
#include "optimized/engine/train_step.h"
#include "optimized/engine/training_checkpoint.h"

namespace plumbline::optimized {
namespace {

// "checkpoint-000011" for the one after step 11.
std::string CheckpointName(int64_t step) {
  char name[40];
  std::snprintf(name, sizeof name, "checkpoint-%06lld", static_cast<long long>(step));
  return name;
}

// The first step to be run; where the case resumes, everything is then as after the step before it.
int64_t FirstStep(const contract::CaseData& data, const std::filesystem::path& case_dir, Training& training,
                  FileSystem& files) {
  if (!data.spec.resume) return data.spec.first_step;
  const int64_t step = ResumeTraining(training, case_dir / "checkpoint", files);
  const int64_t end = data.spec.first_step + data.spec.steps;
  if (step < data.spec.first_step || step >= end) {
    contract::Fail(contract::ErrorCode::kInvalidArgument, "checkpoint: the next step is " + std::to_string(step) +
                                                              "; allowed: " + std::to_string(data.spec.first_step) +
                                                              " to " + std::to_string(end - 1));
  }
  return step;
}

}  // namespace

void TrainRank(const contract::CaseData& data, const std::filesystem::path& case_dir, LedgerCommunicator& communicator,
               const std::filesystem::path& out_dir, std::unique_ptr<Training>& training) {
  TraceRecorder recorder(data.spec, communicator.rank(), out_dir);
  training = Parallelize(data, communicator);
  const auto files = MakeLocalFileSystem();
  const int64_t end = data.spec.first_step + data.spec.steps;
  const int64_t begin = FirstStep(data, case_dir, *training, *files);
  communicator.Take();  // what a resume has called belongs to no step
  for (int64_t step = begin; step < end; ++step) {
    StepResult result = TrainStep(*training, step, [&](std::string_view phase) { recorder.Phase(step, phase); });
    LedgerEntry ledger = communicator.Take();
    result.timings.comm_wait_us = ledger.wait_us;
    recorder.Step(*training, step, result, std::move(ledger));
    if (std::ranges::find(data.spec.save_steps, step) == data.spec.save_steps.end()) continue;
    SaveTraining(*training, step + 1, out_dir / CheckpointName(step), *files);
    communicator.Take();  // nor what a save has called
  }
  recorder.End(end - begin);
}

}  // namespace plumbline::optimized
