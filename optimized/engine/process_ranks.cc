// SPDX-License-Identifier: Apache-2.0
// See process_ranks.h. What ranks agree on beside collectives goes through the store, under the name of the case:
//
//   failures, first failure   who failed first; counted before the others are aborted, so consequences come later
//   over/R                    rank R has closed its files of a case that failed
#include "optimized/engine/process_ranks.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <string>
#include <utility>

#include "conformance/contract/case_file.h"
#include "optimized/comm/ledger.h"
#include "optimized/comm/thread_communicator.h"
#include "optimized/engine/train_rank.h"

namespace plumbline::optimized {
namespace {

using contract::Error;
using contract::ErrorCode;
using Seconds = std::chrono::duration<double>;

// How long the ranks of a start are waited for: hosts of one job begin within seconds.
constexpr Seconds kMeet{60};

// What a rank that was told to abort needs to unwind, and no more: one that is dead or stopped never answers.
constexpr Seconds kUnwind{1};

std::string ToText(const Error& error) { return std::to_string(static_cast<int>(error.code())) + " " + error.what(); }

Error FromText(const std::string& text) {
  const size_t space = text.find(' ');
  return {static_cast<ErrorCode>(std::stoi(text.substr(0, space))), text.substr(space + 1)};
}

Error AsError(const std::exception& error) {
  const auto* known = dynamic_cast<const Error*>(&error);
  return known ? *known : Error(ErrorCode::kInternal, error.what());
}

void RequireWorld(const contract::CaseData& data, const ProcessPlace& place) {
  const int64_t world = data.spec.config.world_size();
  if (world == place.size) return;
  contract::Fail(ErrorCode::kInvalidArgument, "WORLD_SIZE is " + std::to_string(place.size) + "; the mesh of case " +
                                                  data.spec.id + " has " + std::to_string(world));
}

}  // namespace

// This rank's part of one case. Members are declared in the order in which they depend on each other.
class ProcessRanks::Case {
 public:
  Case(const ProcessPlace& place, GlooWorld* world, std::string name)
      : place_(place), world_(world), name_(std::move(name)) {}

  void Train(const std::filesystem::path& case_dir, const std::filesystem::path& out_dir) {
    data_ = contract::ReadCase(case_dir);
    RequireWorld(data_, place_);
    const Seconds timeout(data_.spec.timeout_s);
    communicator_ = std::make_unique<LedgerCommunicator>(Connect(timeout));
    TrainRank(data_, case_dir, *communicator_, out_dir, training_);
    communicator_->Barrier({"end of the case", timeout}).Wait();
  }

  // After Train has thrown.
  void Abort(const std::string& message) {
    if (communicator_) return communicator_->Abort("rank " + std::to_string(place_.rank) + " failed: " + message);
    if (world_) world_->Decline(name_, message);
  }

 private:
  std::unique_ptr<Communicator> Connect(Seconds timeout) {
    if (world_) return world_->MakeCommunicator(name_, timeout);
    return std::move(MakeThreadCommunicators(1, Progress::kLastArriver).front());
  }

  const ProcessPlace& place_;
  GlooWorld* world_;
  const std::string name_;
  contract::CaseData data_;
  std::unique_ptr<LedgerCommunicator> communicator_;
  std::unique_ptr<Training> training_;
};

void ProcessRanks::RunCase(const std::filesystem::path& case_dir, const std::filesystem::path& out_dir) {
  const std::string name = "case " + std::to_string(num_cases_++);
  if (!world_ && !broken_ && place_.size > 1) world_ = GlooWorld::Join(place_, kMeet);
  Case part(place_, world_.get(), name);
  try {
    if (broken_) contract::Fail(ErrorCode::kInternal, *broken_);
    part.Train(case_dir, out_dir);
  } catch (const std::exception& error) {
    Settle(part, name, AsError(error));
  }
}

// Rank 0 leaves last, since the store goes with it: a rank says that it is over when it needs nothing more of it.
void ProcessRanks::Settle(Case& part, const std::string& name, const Error& own) {
  Error agreed = own;
  const auto attempt = [&](const auto& step) {
    try {
      if (world_) step();
    } catch (const Error& lost) {
      broken_ = lost.what();
    }
  };
  attempt([&] {
    if (world_->Count(name + "/failures") == 1) world_->Publish(name + "/first failure", ToText(own));
  });
  attempt([&] { part.Abort(own.what()); });
  attempt([&] {
    if (const auto text = world_->Read(name + "/first failure", kUnwind)) agreed = FromText(*text);
  });
  attempt([&] { world_->Publish(name + "/over/" + std::to_string(place_.rank), "over"); });
  attempt([&] { AwaitPeers(name); });
  throw agreed;
}

void ProcessRanks::AwaitPeers(const std::string& name) {
  const auto deadline = std::chrono::steady_clock::now() + kUnwind;
  for (int64_t rank = 0; rank < place_.size; ++rank) {
    const Seconds left = std::max(Seconds(0), Seconds(deadline - std::chrono::steady_clock::now()));
    if (world_->Read(name + "/over/" + std::to_string(rank), left)) continue;
    broken_ = "rank " + std::to_string(rank) + " did not end " + name + " of this start";
  }
}

}  // namespace plumbline::optimized
