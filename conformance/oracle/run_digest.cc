// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/run_digest.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "conformance/contract/layer_stages.h"
#include "conformance/oracle/gather_formula.h"
#include "conformance/oracle/same_number.h"

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

// `total` with `other` in the place of `kept`, which is a part of it. Digests are sums.
Digest Replace(Digest total, const Digest& kept, const Digest& other) {
  const auto minus = [](auto a, auto b) { return static_cast<uint64_t>(a) - static_cast<uint64_t>(b); };
  total.hash += minus(other.hash, kept.hash);
  total.sum = contract::WrappingSum(total.sum, minus(other.sum, kept.sum));
  total.sum_squares = contract::WrappingSum(total.sum_squares, minus(other.sum_squares, kept.sum_squares));
  total.sum_indexed =
      (total.sum_indexed + minus(other.sum_indexed, kept.sum_indexed)) & (contract::kIndexedModulus - 1);
  return total;
}

// The first of the real numbers that differs, or nothing.
const char* DifferingReal(const std::optional<contract::RealStep>& a, const std::optional<contract::RealStep>& b) {
  if (a.has_value() != b.has_value()) return "lr, gradient_norm and skipped";
  if (!a) return nullptr;
  if (!std::ranges::equal(a->lr, b->lr, SameNumber)) return "lr";
  if (!SameNumber(a->gradient_norm, b->gradient_norm)) return "gradient_norm";
  if (!SameHistory(a->norm_history, b->norm_history)) return "norm_history";
  if (!SameScaler(a->loss_scaler, b->loss_scaler)) return "loss_scaler";
  return a->skipped == b->skipped ? nullptr : "skipped";
}

// The slices of one tensor, one kind, one step, over all ranks.
class SliceMap {
 public:
  // False if the same slice was seen with another digest, which is kept apart.
  bool Add(int64_t rank, const SliceDigest& slice) {
    const auto [entry, fresh] = slices_.try_emplace({slice.begin, slice.end}, slice.digest);
    if (!fresh && !copied_) copied_ = entry->first;
    if (fresh || entry->second == slice.digest) return true;
    others_.push_back({rank, entry->second, slice.digest});
    return false;
  }

  // The first slice that more than one rank holds.
  const std::optional<std::pair<int64_t, int64_t>>& copied() const { return copied_; }

  // For each slice that was seen with another digest: the whole tensor with that one.
  void AppendOthers(TensorKind kind, size_t tensor, const Digest& total, std::vector<RankDigest>& others) const {
    for (const Other& other : others_) {
      others.push_back({other.rank, kind, tensor, Replace(total, other.kept, other.seen)});
    }
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
  struct Other {
    int64_t rank = 0;
    Digest kept;
    Digest seen;
  };
  std::map<std::pair<int64_t, int64_t>, Digest> slices_;
  std::vector<Other> others_;
  std::optional<std::pair<int64_t, int64_t>> copied_;
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
      for (size_t index = 0; index < ranks_.front().steps.size(); ++index) MergeStep(index);
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
      if (trace.world != world) FailOnce(trace_, rank + "world is " + std::to_string(trace.world));
      if (!(trace.config == spec_.config)) {
        FailOnce(trace_, rank + "ran another config: " + contract::ToJson(trace.config));
      }
      CheckSteps(trace, rank);
      trace_.compared += 4;
    }
  }

  // A case that resumes begins somewhere inside its steps, on all ranks at the same one.
  void CheckSteps(const Trace& trace, const std::string& rank) {
    const auto steps = static_cast<int64_t>(trace.steps.size());
    int64_t expected = spec_.steps;
    if (spec_.resume) expected = std::clamp<int64_t>(static_cast<int64_t>(ranks_.front().steps.size()), 1, spec_.steps);
    if (steps != expected || !trace.complete) {
      FailOnce(trace_, rank + "trace has " + std::to_string(steps) + " steps" +
                           (trace.complete ? "" : " and no end record") + "; the case has " + std::to_string(expected));
    }
    const int64_t first = spec_.first_step + spec_.steps - expected;
    if (steps > 0 && trace.steps.front().step != first) {
      FailOnce(trace_, rank + "the first step is " + std::to_string(trace.steps.front().step) +
                           "; the case begins at " + std::to_string(first));
    }
  }

  void MergeStep(size_t index) {
    const StepRecord& first = ranks_.front().steps[index];
    StepDigest merged;
    merged.step = first.step;
    merged.loss = first.loss;
    merged.tokens = first.tokens;
    merged.real = first.real;
    CheckReal(first);
    CompareScalars(index, first, merged);
    for (TensorKind kind : contract::kTensorKinds) MergeKind(index, kind, merged);
    run_.steps.push_back(std::move(merged));
  }

  void CheckReal(const StepRecord& record) {
    if (spec_.model.is_exact()) return;
    ++trace_.compared;
    const size_t num_groups = spec_.config.groups.size() + 1;
    if (record.real && record.real->lr.size() == num_groups) return;
    FailOnce(trace_, "step " + std::to_string(record.step) + ": rank 0 " +
                         (record.real ? "states " + std::to_string(record.real->lr.size()) + " lr for " +
                                            std::to_string(num_groups) + " groups"
                                      : "states no lr, gradient_norm, skipped"));
  }

  void CompareScalars(size_t index, const StepRecord& first, StepDigest& merged) {
    for (const Trace& trace : ranks_.subspan(1)) {
      const StepRecord& record = trace.steps[index];
      const std::string where = "step " + std::to_string(first.step) + ": rank " + std::to_string(trace.rank);
      const char* differing = DifferingReal(record.real, first.real);
      const bool same = SameNumber(record.loss, first.loss) && record.tokens == first.tokens && !differing;
      if (!same) merged.other_scalars.push_back({trace.rank, record.loss, record.tokens, record.real});
      replicas_.compared += first.real ? 5 : 2;
      if (differing) FailOnce(replicas_, where + " states another " + differing + " than rank 0");
      if (!SameNumber(record.loss, first.loss)) {
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
  // Frozen parameters are never sharded, persistent weights not even by stage 3.
  bool IsReplicated(TensorKind kind, const contract::ParameterSpec& parameter) const {
    const int64_t first_sharding_stage = kind == TensorKind::kWeight ? 3 : 1;
    return contract::StageOf(spec_.config, parameter) < first_sharding_stage || parameter.frozen ||
           (kind == TensorKind::kWeight && IsPersistent(parameter, spec_.config));
  }

  // A frozen parameter has weights and master weights only.
  static bool IsAbsent(TensorKind kind, const contract::ParameterSpec& parameter) {
    return parameter.frozen && kind != TensorKind::kWeight && kind != TensorKind::kMaster;
  }

  void CheckWhole(const Trace& trace, size_t index, TensorKind kind, const std::string& where) {
    std::map<std::string, int64_t> listed;
    for (const SliceDigest& slice : trace.steps[index].of(kind)) {
      listed[slice.tensor] += slice.end - slice.begin;
    }
    for (const contract::ParameterSpec& parameter : parameters_) {
      if (IsAbsent(kind, parameter) || !IsReplicated(kind, parameter)) continue;
      ++trace_.compared;
      if (listed[parameter.name] == parameter.numel()) continue;
      FailOnce(trace_, where + " of " + parameter.name + " is not whole on rank " + std::to_string(trace.rank) +
                           ", though stage " + std::to_string(contract::StageOf(spec_.config, parameter)) +
                           " does not shard it");
    }
  }

  // An engine that runs stage 0, or one rank, where sharding was asked for has right numbers and no ledger to show it.
  void CheckSharded(const SliceMap& slices, TensorKind kind, const contract::ParameterSpec& parameter,
                    const std::string& where) {
    if (ranks_.size() == 1 || IsReplicated(kind, parameter)) return;
    ++trace_.compared;
    if (!slices.copied()) return;
    FailOnce(trace_, where + " of " + parameter.name + " " + Slice(slices.copied()->first, slices.copied()->second) +
                         " is on several ranks, though stage " +
                         std::to_string(contract::StageOf(spec_.config, parameter)) + " shards it");
  }

  void MergeKind(size_t index, TensorKind kind, StepDigest& merged) {
    const bool absent = (kind == TensorKind::kMoment && !contract::HasMoment(spec_.config)) ||
                        (kind == TensorKind::kSecondMoment && !contract::HasSecondMoment(spec_.config));
    const std::string where = "step " + std::to_string(merged.step) + ": " + std::string(Name(kind));
    std::vector<SliceMap> tensors(parameters_.size());
    for (const Trace& trace : ranks_) {
      std::set<std::pair<std::string_view, int64_t>> listed;
      for (const SliceDigest& slice : trace.steps[index].of(kind)) {
        // Twice the half of a tensor has as many elements as the whole.
        if (!listed.insert({slice.tensor, slice.begin}).second) {
          FailOnce(trace_, where + " of " + slice.tensor + " " + Slice(slice.begin, slice.end) +
                               " is listed twice on rank " + std::to_string(trace.rank));
        }
        const auto found = index_of_.find(slice.tensor);
        if (found == index_of_.end() || absent || IsAbsent(kind, parameters_[found->second])) {
          FailOnce(trace_, where + " of " + slice.tensor + " is not one of this case");
          continue;
        }
        const auto tensor = found->second;
        if (ranks_.size() > 1) ++replicas_.compared;
        if (!tensors[tensor].Add(trace.rank, slice)) {
          FailOnce(replicas_, where + " of " + slice.tensor + " " + Slice(slice.begin, slice.end) + " on rank " +
                                  std::to_string(trace.rank) + " differs from another rank's");
        }
      }
    }
    if (absent) return;
    const bool some = std::any_of(parameters_.begin(), parameters_.end(),
                                  [&](const auto& parameter) { return IsReplicated(kind, parameter); });
    for (const Trace& trace : ranks_) {
      if (some) CheckWhole(trace, index, kind, where);
    }
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (IsAbsent(kind, parameters_[i])) {
        merged.tensors[static_cast<int>(kind)].push_back(Digest{});
        continue;
      }
      CheckSharded(tensors[i], kind, parameters_[i], where);
      std::string problem;
      const std::optional<Digest> total = tensors[i].Total(parameters_[i].numel(), problem);
      if (!total) FailOnce(trace_, where + " of " + parameters_[i].name + ": " + problem);
      merged.tensors[static_cast<int>(kind)].push_back(total.value_or(Digest{}));
      if (total) tensors[i].AppendOthers(kind, i, *total, merged.other_digests);
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

std::vector<double> RunDigest::Losses() const {
  std::vector<double> losses;
  for (const StepDigest& step : steps) losses.push_back(step.loss);
  return losses;
}

MergedRun MergeTraces(const contract::Case& spec, std::span<const Trace> ranks) { return Merger(spec, ranks).Merge(); }

}  // namespace plumbline::conformance
