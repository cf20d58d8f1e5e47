// SPDX-License-Identifier: Apache-2.0
// Joins the records of the shards of one run (`--shard i/n`) into the record of the whole run.
// It refuses what does not belong together, rather than to make a verdict out of two different runs.
#pragma once

#include <set>
#include <span>
#include <string>

#include "reports/record/record.h"

namespace plumbline::reports {

struct MergeOptions {
  bool allow_partial = false;  // missing shards are listed in the result, which then has exit code 1
  bool require = false;        // for ExitCodeFor
  // Options that say where and how fast, not what: they may differ and are left out of the result where they do.
  std::set<std::string> free_options = {"jobs", "shard", "out", "record", "junit", "scratch", "progress", "verbose"};
  // Entries of the environment that make another build of the harness: they must agree. Others are joined by " | ".
  std::set<std::string> fixed_environment = {"commit", "compiler", "build_mode"};
  // One that only shards with a case of the witness have; of those the same.
  std::string witness_environment = "libtorch";
};

// Records may come in any order; cases and defects are in the order of shards. Throws RecordError, naming both records'
// shards, if: there is none; one is itself a partial merge; its totals do not add up; command, seed, options, text,
// engine, fixed environment or shard count differ; a shard, case (id and engine) or defect appears twice; a shard is
// missing (all missing ones are named). Totals and exit code are computed anew; `listed` is the sum.
Record Merge(std::span<const Record> shards, const MergeOptions& options = MergeOptions{});

}  // namespace plumbline::reports
