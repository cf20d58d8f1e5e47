// SPDX-License-Identifier: Apache-2.0
// The part of Diagnosis that is about a number of the trace: loss, learning rate, norm of the gradient.
#include <algorithm>
#include <cmath>
#include <utility>

#include "conformance/oracle/schedule_formula.h"
#include "conformance/oracle/update_formula.h"
#include "conformance/runner/diagnosis.h"

namespace plumbline::conformance {

// The truth of a number, and what it would be under other hypotheses. Nothing where it is not known.
void Diagnosis::AddNumber(const std::string& quantity, const Dump& dump, size_t group, Evidence& evidence) const {
  if (quantity == kLoss && reference_) {
    evidence.truth = evidence.gradient = reference_->Loss();
    evidence.shares = reference_->LossShares();
    evidence.share_tokens = reference_->share_tokens();
    return;
  }
  const auto add = [&](const char* hypothesis, std::string what, double value) {
    evidence.changed.push_back({hypothesis, std::move(what), {value}});
  };
  if (quantity == kRate) {
    const auto lrs = ScheduledLr(spec().config, step());
    evidence.truth = {lrs[group].value};
    for (size_t other = 0; other < lrs.size(); ++other) {
      if (other != group) add("other_group_rate", "of group " + std::to_string(other), lrs[other].value);
    }
    for (int64_t other = std::max<int64_t>(0, step() - 2); other <= step() + 2; ++other) {
      if (other == step()) continue;
      add("other_step_rate", "of step " + std::to_string(other), ScheduledLr(spec().config, other)[group].value);
    }
  }
  if (quantity == kNorm) {
    const double norm = ClippedNorm(dump);
    const double ranks = std::sqrt(static_cast<double>(spec().config.world_size()));
    evidence.truth = {norm};
    add("clipping_norm", "summed over ranks that hold the same", norm * ranks);
    add("clipping_norm", "averaged over ranks", norm / ranks);
    add("clipping_norm", "after clipping", norm * ClippingOf(LargestNorm(), norm).factor);
    add("clipping_norm", "with what is exempt", GradientNorm(dump));
    for (const HeldRange& range : evidence.held) {
      const double own = RankGradientNorms(dump, spec().config.world_size())[static_cast<size_t>(range.rank)];
      add("clipping_norm", "of the shard of rank " + std::to_string(range.rank), own);
    }
  }
}

// What is known of one rank's number, or nothing.
std::optional<Evidence> Diagnosis::NumberEvidence(const std::string& quantity, const Dump& dump, size_t rank,
                                                  size_t group) const {
  const contract::StepRecord& record = dump.records[rank];
  Evidence evidence;
  evidence.is_exact = model_.is_exact();
  evidence.is_number = true;
  evidence.num_ranks = spec().config.data_degree;
  evidence.num_accumulation_steps = spec().config.accumulation_steps;
  evidence.held = {{static_cast<int64_t>(rank), 0, 1}};
  AddNumber(quantity, dump, group, evidence);
  if (evidence.truth.empty() || (quantity != kLoss && !record.real)) return std::nullopt;
  if (quantity == kRate && group >= record.real->lr.size()) return std::nullopt;
  evidence.candidate = {quantity == kLoss   ? record.loss
                        : quantity == kRate ? record.real->lr[group]
                                            : record.real->gradient_norm};
  constexpr double kRounding = 0x1p-20;  // of a sum of fp32 numbers, or of a rate computed in fp32
  if (!evidence.is_exact) evidence.noise = kRounding * std::abs(evidence.truth[0]);
  return evidence;
}

reports::DivergenceRecord Diagnosis::FinishNumber(const Dump& dump, reports::DivergenceRecord record) const {
  record.tensor.clear();
  record.layer = -1;
  record.ranks.clear();
  std::optional<Evidence> first;
  const size_t num_groups = record.quantity == kRate ? spec().config.groups.size() + 1 : 1;
  for (size_t rank = 0; rank < dump.records.size(); ++rank) {
    for (size_t group = 0; group < num_groups; ++group) {
      std::optional<Evidence> evidence = NumberEvidence(record.quantity, dump, rank, group);
      // Positive form: a number that is not finite is not within rounding.
      if (!evidence || std::abs(evidence->candidate[0] - evidence->truth[0]) <= evidence->noise) continue;
      if (record.ranks.empty() || record.ranks.back() != static_cast<int64_t>(rank)) {
        record.ranks.push_back(static_cast<int64_t>(rank));
      }
      if (!first) first = std::move(evidence);
    }
  }
  if (first) {
    Rank(*first, record);
  } else {
    record.undiagnosed = kNotAgain;
  }
  return record;
}

}  // namespace plumbline::conformance
