// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/run_digest.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

namespace plumbline::conformance {
namespace {

using contract::Digest;
using contract::SliceDigest;
using contract::StepRecord;
using contract::TensorKind;
using contract::Trace;
using reports::CheckOutcome;
using reports::CheckRecord;

// Fails a check once: the first finding is the one that is reported.
void FailOnce(CheckRecord& check, const std::string& detail) {
  if (check.outcome == CheckOutcome::kFail) return;
  check.outcome = CheckOutcome::kFail;
  check.detail = detail;
}

std::string Slice(int64_t begin, int64_t end) { return "[" + std::to_string(begin) + ", " + std::to_string(end) + ")"; }

// The slices of one tensor, one kind, one step, over all ranks.
class SliceMap {
 public:
  // False if the same slice was seen with another digest.
  bool Add(const SliceDigest& slice) {
    const auto [entry, fresh] = slices_.try_emplace({slice.begin, slice.end}, slice.digest);
    return fresh || entry->second == slice.digest;
  }

  // The digest of the whole tensor, or what is wrong with the cover of [0, numel).
  std::optional<Digest> Total(int64_t numel, std::string& problem) const {
    Digest total;
    int64_t covered = 0;
    for (const auto& [range, digest] : slices_) {
      if (range.first != covered) {
        problem = range.first < covered ? "slice " + Slice(range.first, range.second) + " overlaps another"
                                        : "elements " + Slice(covered, range.first) + " are on no rank";
        return std::nullopt;
      }
      covered = range.second;
      total += digest;
    }
    if (covered == numel) return total;
    problem = covered < numel ? "elements " + Slice(covered, numel) + " are on no rank"
                              : "a slice ends at " + std::to_string(covered) + ", beyond the tensor's " +
                                    std::to_string(numel) + " elements";
    return std::nullopt;
  }

 private:
  std::map<std::pair<int64_t, int64_t>, Digest> slices_;
};

// Puts the traces together, step by step; every finding goes into one of three checks.
class Merger {
 public:
  Merger(const contract::Case& spec, std::span<const Trace> ranks)
      : spec_(spec), ranks_(ranks), parameters_(contract::Parameters(spec.model)) {
    for (size_t i = 0; i < parameters_.size(); ++i) index_of_[parameters_[i].name] = i;
  }

  MergedRun Merge() {
    CheckHeaders();
    if (trace_.outcome == CheckOutcome::kPass) {
      for (int64_t step = 0; step < spec_.steps; ++step) MergeStep(step);
    }
    if (replicas_.compared == 0 && replicas_.outcome == CheckOutcome::kPass) {
      replicas_.outcome = CheckOutcome::kNotApplicable;
    }
    if (sequences_.compared == 0) sequences_.outcome = CheckOutcome::kNotApplicable;
    return {{trace_, replicas_, sequences_}, std::move(run_)};
  }

 private:
  void CheckHeaders() {
    const auto world = static_cast<int64_t>(ranks_.size());
    if (world != spec_.config.world_size()) {
      FailOnce(trace_,
               std::to_string(world) + " traces; the case has " + std::to_string(spec_.config.world_size()) + " ranks");
    }
    for (const Trace& trace : ranks_) {
      const std::string rank = "rank " + std::to_string(trace.rank) + ": ";
      const auto steps = static_cast<int64_t>(trace.steps.size());
      if (trace.world != world) FailOnce(trace_, rank + "world is " + std::to_string(trace.world));
      if (!(trace.config == spec_.config)) {
        FailOnce(trace_, rank + "ran another config: " + contract::ToJson(trace.config));
      }
      if (steps != spec_.steps || !trace.complete) {
        FailOnce(trace_, rank + "trace has " + std::to_string(steps) + " steps" +
                             (trace.complete ? "" : " and no end record") + "; the case has " +
                             std::to_string(spec_.steps));
      }
      if (steps > 0 && trace.steps.front().step != spec_.first_step) {
        FailOnce(trace_, rank + "the first step is " + std::to_string(trace.steps.front().step) +
                             "; the case begins at " + std::to_string(spec_.first_step));
      }
      trace_.compared += 4;
    }
  }

  void MergeStep(int64_t step) {
    const StepRecord& first = ranks_.front().steps[static_cast<size_t>(step)];
    StepDigest merged{first.loss, first.tokens, first.real, {}};
    CompareScalars(step, first);
    for (TensorKind kind : contract::kTensorKinds) MergeKind(step, kind, merged);
    run_.steps.push_back(std::move(merged));
  }

  void CompareScalars(int64_t step, const StepRecord& first) {
    for (const Trace& trace : ranks_.subspan(1)) {
      const StepRecord& record = trace.steps[static_cast<size_t>(step)];
      const std::string where = "step " + std::to_string(step) + ": rank " + std::to_string(trace.rank);
      replicas_.compared += 2;
      if (record.loss != first.loss) {
        FailOnce(replicas_,
                 where + " states loss " + std::to_string(record.loss) + ", rank 0 " + std::to_string(first.loss));
      }
      if (record.tokens != first.tokens) {
        FailOnce(replicas_, where + " states " + std::to_string(record.tokens) + " tokens, rank 0 " +
                                std::to_string(first.tokens));
      }
      if (!record.comm || !first.comm) continue;
      ++sequences_.compared;
      if (record.comm_sequence != first.comm_sequence) {
        FailOnce(sequences_, where + " made other collectives than rank 0, or in another order");
      }
    }
  }

  // What a stage does not shard lies on every rank; a rank that leaves it out would escape the comparison of replicas.
  bool IsReplicated(TensorKind kind) const {
    const int64_t first_sharding_stage = kind == TensorKind::kWeight ? 3 : 1;
    return spec_.config.zero_stage < first_sharding_stage;
  }

  void CheckWhole(const Trace& trace, int64_t step, TensorKind kind, const std::string& where) {
    std::map<std::string, int64_t> listed;
    for (const SliceDigest& slice : trace.steps[static_cast<size_t>(step)].of(kind)) {
      listed[slice.tensor] += slice.end - slice.begin;
    }
    for (const contract::ParameterSpec& parameter : parameters_) {
      if (parameter.frozen && kind != TensorKind::kWeight && kind != TensorKind::kMaster) continue;
      ++trace_.compared;
      if (listed[parameter.name] == parameter.numel()) continue;
      FailOnce(trace_, where + " of " + parameter.name + " is not whole on rank " + std::to_string(trace.rank) +
                           ", though stage " + std::to_string(spec_.config.zero_stage) + " does not shard it");
    }
  }

  void MergeKind(int64_t step, TensorKind kind, StepDigest& merged) {
    const bool absent = (kind == TensorKind::kMoment && !contract::HasMoment(spec_.config)) ||
                        (kind == TensorKind::kSecondMoment && !contract::HasSecondMoment(spec_.config));
    const std::string where = "step " + std::to_string(step) + ": " + std::string(Name(kind));
    std::vector<SliceMap> tensors(parameters_.size());
    for (const Trace& trace : ranks_) {
      for (const SliceDigest& slice : trace.steps[static_cast<size_t>(step)].of(kind)) {
        const auto found = index_of_.find(slice.tensor);
        if (found == index_of_.end() || absent) {
          FailOnce(trace_, where + " of " + slice.tensor + " is not one of this case");
          continue;
        }
        const auto tensor = found->second;
        if (ranks_.size() > 1) ++replicas_.compared;
        if (!tensors[tensor].Add(slice)) {
          FailOnce(replicas_, where + " of " + slice.tensor + " " + Slice(slice.begin, slice.end) + " on rank " +
                                  std::to_string(trace.rank) + " differs from another rank's");
        }
      }
    }
    if (absent) return;
    for (const Trace& trace : ranks_) {
      if (IsReplicated(kind)) CheckWhole(trace, step, kind, where);
    }
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (parameters_[i].frozen && kind != TensorKind::kWeight && kind != TensorKind::kMaster) {
        merged.tensors[static_cast<int>(kind)].push_back(Digest{});
        continue;
      }
      std::string problem;
      const std::optional<Digest> total = tensors[i].Total(parameters_[i].numel(), problem);
      if (!total) FailOnce(trace_, where + " of " + parameters_[i].name + ": " + problem);
      merged.tensors[static_cast<int>(kind)].push_back(total.value_or(Digest{}));
      ++trace_.compared;
    }
  }

  const contract::Case& spec_;
  std::span<const Trace> ranks_;
  std::vector<contract::ParameterSpec> parameters_;
  std::map<std::string, size_t, std::less<>> index_of_;
  CheckRecord trace_{"trace", CheckOutcome::kPass, 0, ""};
  CheckRecord replicas_{"replicas", CheckOutcome::kPass, 0, ""};
  CheckRecord sequences_{"collectives", CheckOutcome::kPass, 0, ""};
  RunDigest run_;
};

}  // namespace

MergedRun MergeTraces(const contract::Case& spec, std::span<const Trace> ranks) { return Merger(spec, ranks).Merge(); }

}  // namespace plumbline::conformance
