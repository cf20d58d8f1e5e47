// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/guard.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "conformance/oracle/accumulation_check.h"
#include "conformance/oracle/bias_check.h"
#include "conformance/oracle/exact_check.h"
#include "conformance/oracle/ledger_check.h"
#include "conformance/oracle/loss_scale_check.h"
#include "conformance/oracle/memory_check.h"
#include "conformance/oracle/storage_rounding.h"

namespace plumbline::conformance {
namespace {

using contract::SliceDigest;
using contract::TensorKind;
using contract::Trace;
using reports::CheckOutcome;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

CheckOutcome OutcomeOf(const std::vector<reports::CheckRecord>& checks, std::string_view name) {
  const auto found = std::find_if(checks.begin(), checks.end(), [&](const auto& check) { return check.name == name; });
  return found == checks.end() ? CheckOutcome::kNotApplicable : found->outcome;
}

// Two different entries for which `alike` holds, or nothing.
template <typename Alike>
std::optional<std::pair<size_t, size_t>> FindPair(size_t count, const Alike& alike) {
  for (size_t i = 0; i < count; ++i) {
    for (size_t j = i + 1; j < count; ++j) {
      if (alike(i, j)) return std::pair(i, j);
    }
  }
  return std::nullopt;
}

// A slice of the last rank that the first rank has too: a replica.
SliceDigest* FindReplica(const Trace& first, Trace& last) {
  for (TensorKind kind : contract::kTensorKinds) {
    for (SliceDigest& slice : last.steps.front().of(kind)) {
      const std::vector<SliceDigest>& others = first.steps.front().of(kind);
      const bool shared = std::any_of(others.begin(), others.end(), [&](const SliceDigest& other) {
        return other.tensor == slice.tensor && other.begin == slice.begin && other.end == slice.end;
      });
      if (shared && slice.begin < slice.end) return &slice;
    }
  }
  return nullptr;
}

// The traces of the first step as they were, for one change after the other.
class TraceGuard {
 public:
  TraceGuard(const contract::Case& spec, std::span<const Trace> ranks, Guard& guard) : spec_(spec), guard_(guard) {
    spec_.steps = 1;
    for (const Trace& trace : ranks) {
      first_.push_back(trace);
      first_.back().steps.resize(1);
    }
  }

  // `change` is given a copy of the traces.
  template <typename Change>
  void Merge(const char* comparison, const char* name, const Change& change) {
    std::vector<Trace> ranks = first_;
    if (!change(ranks)) return;
    guard_.Demand(comparison, name, OutcomeOf(MergeTraces(spec_, ranks).checks, comparison));
  }

  void GuardWhole() {
    Merge("trace", "a missing tensor", [](std::vector<Trace>& ranks) {
      auto& weights = ranks.back().steps.front().of(TensorKind::kWeight);
      return !weights.empty() && (weights.pop_back(), true);
    });
    Merge("trace", "swapped names", [](std::vector<Trace>& ranks) {
      auto& weights = ranks.back().steps.front().of(TensorKind::kWeight);
      const auto pair = FindPair(weights.size(), [&](size_t i, size_t j) {
        return weights[i].end - weights[i].begin != weights[j].end - weights[j].begin;
      });
      if (pair) std::swap(weights[pair->first].tensor, weights[pair->second].tensor);
      return pair.has_value();
    });
  }

  void GuardRanks() {
    if (first_.size() < 2) return;
    Merge("replicas", "one rank's tensor", [](std::vector<Trace>& ranks) {
      SliceDigest* replica = FindReplica(ranks.front(), ranks.back());
      if (replica) ++replica->digest.hash;
      return replica != nullptr;
    });
    Merge("replicas", "one rank's loss is NaN", [](std::vector<Trace>& ranks) {
      ranks.back().steps.front().loss = kNaN;
      return true;
    });
    Merge("collectives", "one rank's sequence", [](std::vector<Trace>& ranks) {
      ++ranks.back().steps.front().comm_sequence;
      return ranks.front().steps.front().comm.has_value() && ranks.back().steps.front().comm.has_value();
    });
  }

  void GuardBooks() {
    std::vector<Trace> ranks = first_;
    contract::StepRecord& last = ranks.back().steps.front();
    if (last.comm && !last.comm->empty()) {
      last.comm->begin()->second.bytes += 1;
      guard_.Demand("ledger", "one byte", CheckLedger(spec_, ranks, true).outcome);
      last.comm->begin()->second.bytes -= 1;
      last.comm->begin()->second.calls += 1;
      guard_.Demand("ledger", "one call", CheckLedger(spec_, ranks, true).outcome);
      last.comm->begin()->second.calls -= 1;
    }
    if (last.comm) {
      last.comm_sequence ^= 1;
      guard_.Demand("ledger", "another sequence", CheckLedger(spec_, ranks, true).outcome);
    }
    if (!last.memory_peak_bytes.empty()) {
      last.memory_peak_bytes.begin()->second += 1;
      guard_.Demand("memory", "one byte", CheckMemory(spec_, ranks, true).outcome);
    }
  }

 private:
  contract::Case spec_;
  std::vector<Trace> first_;
  Guard& guard_;
};

// Puts a value in a place for as long as it lives.
template <typename Value>
class Planted {
 public:
  Planted(Value& place, Value value) : place_(place), kept_(std::exchange(place, std::move(value))) {}
  ~Planted() { place_ = std::move(kept_); }
  Planted(const Planted&) = delete;
  Planted& operator=(const Planted&) = delete;

 private:
  Value& place_;
  Value kept_;
};

// What digests have in common, whoever compares them: one element, a missing step, swapped names, a NaN.
template <typename Compare>
void GuardDigests(const char* comparison, RunDigest& seen, const Compare& compare, Guard& guard) {
  if (seen.steps.empty()) return;
  StepDigest& last = seen.steps.back();
  std::vector<contract::Digest>& weights = last.tensors[static_cast<int>(TensorKind::kWeight)];
  if (!weights.empty()) {
    contract::Digest changed = weights.back();
    changed.AddBits(0, 1);
    const Planted element(weights.back(), changed);
    guard.Demand(comparison, "one element", compare());
  }
  const auto pair = FindPair(weights.size(), [&](size_t i, size_t j) { return !(weights[i] == weights[j]); });
  if (pair) {
    const Planted one(weights[pair->first], weights[pair->second]);
    guard.Demand(comparison, "swapped names", compare());
  }
  {
    const Planted loss(last.loss, kNaN);
    guard.Demand(comparison, "a loss that is NaN", compare());
  }
  const StepDigest step = last;
  seen.steps.pop_back();
  guard.Demand(comparison, "a missing step", compare());
  seen.steps.push_back(step);
}

std::vector<double>* Largest(std::vector<std::vector<double>>& tensors) {
  const auto found = std::max_element(tensors.begin(), tensors.end(),
                                      [](const auto& a, const auto& b) { return a.size() < b.size(); });
  return found == tensors.end() || found->empty() ? nullptr : &*found;
}

double SquaredDistance(const std::vector<double>& a, const std::vector<double>& b) {
  return std::transform_reduce(a.begin(), a.end(), b.begin(), 0.0, std::plus<>(),
                               [](double x, double y) { return (x - y) * (x - y); });
}

// Two gradients of one size to be swapped: of all such pairs the one whose smaller norm is largest. A small vector's
// may be noise in every engine, and a swap there rightly passes.
std::optional<std::pair<size_t, size_t>> PairToSwap(const std::vector<std::vector<double>>& gradients) {
  std::vector<double> squares;
  for (const std::vector<double>& values : gradients) {
    squares.push_back(std::inner_product(values.begin(), values.end(), values.begin(), 0.0));
  }
  std::optional<std::pair<size_t, size_t>> best;
  double largest = 0;
  for (size_t i = 0; i < gradients.size(); ++i) {
    for (size_t j = i + 1; j < gradients.size(); ++j) {
      if (gradients[i].size() != gradients[j].size()) continue;
      if (SquaredDistance(gradients[i], gradients[j]) < std::max(squares[i], squares[j])) continue;
      const double smaller = std::min(squares[i], squares[j]);
      if (!(smaller > largest)) continue;
      largest = smaller;
      best = std::pair(i, j);
    }
  }
  return best;
}

size_t LargestElement(const std::vector<double>& values) {
  const auto found =
      std::max_element(values.begin(), values.end(), [](double a, double b) { return std::abs(a) < std::abs(b); });
  return static_cast<size_t>(found - values.begin());
}

}  // namespace

void Guard::Demand(const std::string& comparison, const std::string& change, CheckOutcome outcome) {
  ++planted_;
  if (std::find(comparisons_.begin(), comparisons_.end(), comparison) == comparisons_.end()) {
    comparisons_.push_back(comparison);
  }
  if (outcome != CheckOutcome::kFail && unnoticed_.empty()) unnoticed_ = comparison + " does not notice " + change;
}

reports::CheckRecord Guard::Check() const {
  if (planted_ == 0) return {"guard", CheckOutcome::kVacuous, 0, "no change could be planted"};
  if (!unnoticed_.empty()) return {"guard", CheckOutcome::kVacuous, planted_, unnoticed_};
  std::string names;
  for (const std::string& name : comparisons_) names += (names.empty() ? "" : ", ") + name;
  return {"guard", CheckOutcome::kPass, planted_, "planted changes noticed by " + names};
}

void GuardTraces(const contract::Case& spec, std::span<const Trace> ranks, Guard& guard) {
  if (ranks.empty() || ranks.front().steps.empty()) return;
  TraceGuard traces(spec, ranks, guard);
  traces.GuardWhole();
  traces.GuardRanks();
  traces.GuardBooks();
}

void GuardExact(const contract::ModelSpec& model, const RunDigest& truth, RunDigest seen, Guard& guard) {
  GuardDigests(
      "exact", seen, [&] { return CompareExactly(model, truth, seen).check.outcome; }, guard);
}

void GuardRelation(const contract::ModelSpec& model, const RunDigest& expected, RunDigest seen, Guard& guard) {
  GuardDigests(
      "relation", seen, [&] { return CompareBitwise("guard", model, expected, seen).check.outcome; }, guard);
}

void GuardSteps(const contract::ModelSpec& model, const Yardstick& yardstick, std::vector<StepSight> seen,
                Guard& guard) {
  if (seen.empty()) return;
  StepSight& last = seen.back();
  std::vector<std::vector<double>>& gradients = last.of(TensorKind::kGradient);
  const auto gradient = [&] { return CheckGradients(model, yardstick, seen).check.outcome; };
  if (std::vector<double>* values = Largest(gradients)) {
    double& element = (*values)[LargestElement(*values)];
    {
      const Planted sign(element, -element);
      guard.Demand("gradient", "one element's sign", gradient());
    }
    const Planted nan(element, kNaN);
    guard.Demand("gradient", "a NaN", gradient());
  }
  if (const auto pair = PairToSwap(gradients)) {
    std::swap(gradients[pair->first], gradients[pair->second]);
    guard.Demand("gradient", "swapped names", gradient());
    std::swap(gradients[pair->first], gradients[pair->second]);
  }
  {
    const Planted half(last.loss, last.loss / 2);
    guard.Demand("loss", "half of it", CheckLosses(yardstick, seen).check.outcome);
  }
  const Planted nan(last.loss, kNaN);
  guard.Demand("loss", "a NaN", CheckLosses(yardstick, seen).check.outcome);
}

void GuardBias(const contract::ModelSpec& model, std::span<const StepSight> truth, std::vector<StepSight> seen,
               Guard& guard) {
  for (const SlopeSample& sample : MeasureSlopes(model, truth, seen)) {
    double sum = 0;
    for (double slope : sample.slopes) sum += slope;
    const double factor = 1 + std::copysign(kSoughtBias, sum);
    std::vector<std::vector<double>> kept;
    for (StepSight& sight : seen) {
      std::vector<double>& values = sight.of(TensorKind::kGradient)[sample.tensor];
      kept.push_back(values);
      for (double& value : values) value *= factor;
    }
    guard.Demand("bias", "2^-10 of " + sample.name, CheckBias(model, truth, seen).check.outcome);
    for (size_t s = 0; s < seen.size(); ++s) seen[s].of(TensorKind::kGradient)[sample.tensor] = std::move(kept[s]);
    const Planted nan(seen.back().of(TensorKind::kGradient)[sample.tensor].back(), kNaN);
    guard.Demand("bias", "a NaN", CheckBias(model, truth, seen).check.outcome);
  }
}

void GuardAccumulation(const contract::ModelSpec& model, std::span<const StepSight> plain, std::vector<StepSight> seen,
                       Guard& guard) {
  if (seen.empty()) return;
  const auto accumulation = [&] { return CheckAccumulation(model, plain, seen).check.outcome; };
  if (const std::vector<size_t> tensors = TensorsWithManyShares(model); !tensors.empty()) {
    const Planted nan(seen.back().of(TensorKind::kGradient)[tensors.front()].back(), kNaN);
    guard.Demand("accumulation", "a NaN", accumulation());
  }
  for (StepSight& sight : seen) {
    for (std::vector<double>& tensor : sight.of(TensorKind::kGradient)) {
      for (double& value : tensor) value = RoundToBits(value, sight.storage == contract::DType::kF16 ? 11 : 8);
    }
  }
  guard.Demand("accumulation", "sums in storage", accumulation());
}

void GuardUpdate(const contract::Case& spec, const RealStart& start, StepSight after, Guard& guard) {
  const std::vector<contract::RealParameterState>& before = start.state;
  const auto update = [&] { return CheckUpdate(spec, start, after).check.outcome; };
  // The master weight that moved the most, as if it had not.
  std::vector<std::vector<double>>& masters = after.of(TensorKind::kMaster);
  double* moved = nullptr;
  double farthest = 0, kept = 0;
  for (size_t tensor = 0; tensor < masters.size() && tensor < before.size(); ++tensor) {
    for (size_t i = 0; i < masters[tensor].size() && i < before[tensor].master.size(); ++i) {
      const double distance = std::abs(masters[tensor][i] - before[tensor].master[i]);
      if (!(distance > farthest)) continue;
      farthest = distance;
      moved = &masters[tensor][i];
      kept = before[tensor].master[i];
    }
  }
  if (moved) {
    const Planted still(*moved, kept);
    guard.Demand("update", "one element that stays", update());
  }
  if (std::vector<double>* moments = Largest(after.of(TensorKind::kMoment))) {
    const Planted nan(moments->front(), kNaN);
    guard.Demand("update", "a NaN", update());
  }
  if (contract::NormHistory* history = after.real.norm_history ? &*after.real.norm_history : nullptr) {
    const Planted still(history->mean, start.norm_history.mean);
    if (history->mean != start.norm_history.mean) guard.Demand("update", "a history that stays", update());
  }
}

void GuardSkipped(const contract::Case& spec, const RealStart& before, StepSight after, Guard& guard) {
  const auto skip = [&] { return CheckSkipped(spec, before, after).check.outcome; };
  // Not the row that has no value, which is of any token: NaN + 1 is NaN.
  std::vector<double>* masters = Largest(after.of(TensorKind::kMaster));
  const auto last = masters == nullptr ? std::vector<double>::reverse_iterator()
                                       : std::find_if(masters->rbegin(), masters->rend(),
                                                      [](double value) { return std::isfinite(value); });
  if (masters != nullptr && last != masters->rend()) {
    const Planted moved(*last, *last + 1);
    guard.Demand("skip", "one element that moves", skip());
  }
  const Planted silent(after.real.skipped, false);
  guard.Demand("skip", "a step that does not say so", skip());
}

void GuardLossScale(const contract::DynamicLossScale& settings, const contract::LossScaler& before, RunDigest seen,
                    Guard& guard) {
  if (seen.steps.empty() || !seen.steps.back().real || !seen.steps.back().real->loss_scaler) return;
  contract::RealStep& last = *seen.steps.back().real;
  const auto scale = [&] { return CheckLossScale(settings, before, seen).check.outcome; };
  {
    const Planted twice(last.loss_scaler->scale, 2 * last.loss_scaler->scale);
    guard.Demand("scale", "a scale that doubles", scale());
  }
  const Planted skipped(last.skipped, !last.skipped);
  guard.Demand("scale", "a skipped step", scale());
}

void GuardTrajectory(std::span<const double> truth, int64_t most_tokens, std::span<const std::vector<double>> drifted,
                     std::vector<double> seen, Guard& guard) {
  if (seen.empty()) return;
  const auto trajectory = [&](const std::vector<double>& losses) {
    return CheckTrajectory(truth, most_tokens, drifted, losses).check.outcome;
  };
  // Falls at last by a little, or the demand that the last loss is below the first would notice it.
  std::vector<double> flat(seen.size(), seen.front());
  flat.back() *= 1 - 0x1p-20;
  guard.Demand("trajectory", "losses that stay", trajectory(flat));
  seen.back() = kNaN;
  guard.Demand("trajectory", "a NaN", trajectory(seen));
}

}  // namespace plumbline::conformance
