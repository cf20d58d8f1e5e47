// SPDX-License-Identifier: Apache-2.0
// See run_case.h. Ranks share the case's data, read-only, and the communicator; nothing else.
#include "optimized/engine/run_case.h"

#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "conformance/contract/case_file.h"
#include "conformance/contract/error.h"
#include "optimized/comm/ledger.h"
#include "optimized/comm/thread_communicator.h"
#include "optimized/engine/train_rank.h"

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

void RunRank(const contract::CaseData& data, const std::filesystem::path& case_dir, LedgerCommunicator& communicator,
             const std::filesystem::path& out_dir, FirstFailure& failure) {
  // Outlives the handlers below: destroying calls in flight aborts the other ranks, and that must come after the
  // record.
  std::unique_ptr<Training> training;
  try {
    TrainRank(data, case_dir, communicator, out_dir, training);
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
