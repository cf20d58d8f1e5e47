// SPDX-License-Identifier: Apache-2.0
// See run_case.h. Ranks share the case's data, read-only, and the communicator; nothing else.
#include "optimized/engine/run_case.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "conformance/contract/case_file.h"
#include "conformance/contract/error.h"
#include "optimized/checkpoint/file_system.h"
#include "optimized/comm/ledger.h"
#include "optimized/comm/thread_communicator.h"
#include "optimized/engine/parallelize.h"
#include "optimized/engine/trace_recorder.h"
#include "optimized/engine/train_step.h"
#include "optimized/engine/training_checkpoint.h"

namespace plumbline::optimized {
namespace {

// Keeps the first error; those that follow from it are dropped.
class FirstFailure {
 public:
  void Record(std::exception_ptr failure) {
    const std::lock_guard lock(mutex_);
    if (!first_) first_ = std::move(failure);
  }

  void Rethrow() const {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr first_;
};

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

void Train(const contract::CaseData& data, const std::filesystem::path& case_dir, LedgerCommunicator& communicator,
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

void RunRank(const contract::CaseData& data, const std::filesystem::path& case_dir, LedgerCommunicator& communicator,
             const std::filesystem::path& out_dir, FirstFailure& failure) {
  // Outlives the handlers below: destroying calls in flight aborts the other ranks, and that must come after the
  // record.
  std::unique_ptr<Training> training;
  try {
    Train(data, case_dir, communicator, out_dir, training);
  } catch (const std::exception& error) {
    failure.Record(std::current_exception());
    communicator.Abort("rank " + std::to_string(communicator.rank()) + " failed: " + error.what());
  }
}

}  // namespace

void RunCase(const std::filesystem::path& case_dir, const std::filesystem::path& out_dir) {
  const contract::CaseData data = contract::ReadCase(case_dir);
  const int64_t world = data.spec.config.world_size();
  if (world > kMaxDataDegree) {
    contract::Fail(contract::ErrorCode::kUnsupported,
                   "mesh.data is " + std::to_string(world) + "; supported: at most " + std::to_string(kMaxDataDegree));
  }
  // Without overlap every call is waited for at once: a thread of its own would only add hand-overs.
  const Progress progress = data.spec.config.overlap_comm && world > 1 ? Progress::kOwnThread : Progress::kLastArriver;
  std::vector<std::unique_ptr<LedgerCommunicator>> communicators;
  for (std::unique_ptr<Communicator>& rank : MakeThreadCommunicators(world, progress)) {
    communicators.push_back(std::make_unique<LedgerCommunicator>(std::move(rank)));
  }
  FirstFailure failure;
  {
    std::vector<std::jthread> ranks;
    for (const auto& communicator : communicators) {
      ranks.emplace_back([&] { RunRank(data, case_dir, *communicator, out_dir, failure); });
    }
  }
  failure.Rethrow();
}

}  // namespace plumbline::optimized
