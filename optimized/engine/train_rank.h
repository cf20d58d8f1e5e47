// SPDX-License-Identifier: Apache-2.0
// What one rank does of a case, from the data to its traces and checkpoints, whatever a rank is. Who starts ranks and
// gathers their errors is in run_case.h (threads) and process_ranks.h (processes).
#pragma once

#include <filesystem>
#include <memory>

#include "conformance/contract/case_file.h"
#include "optimized/comm/ledger.h"
#include "optimized/engine/training.h"

namespace plumbline::optimized {

// The files of this rank are closed when it returns or throws. `training` is the caller's and is to be destroyed after
// what is thrown has been told to the other ranks: it may hold calls in flight, whose end aborts them with another
// reason.
void TrainRank(const contract::CaseData& data, const std::filesystem::path& case_dir, LedgerCommunicator& communicator,
               const std::filesystem::path& out_dir, std::unique_ptr<Training>& training);

}  // namespace plumbline::optimized
