// SPDX-License-Identifier: Apache-2.0
// Predictions of a gradient from its shares by micro-batch. Each linear one is a weight for every share.
#include <algorithm>
#include <bit>
#include <functional>

#include "conformance/diagnosis/hypothesis.h"
#include "conformance/oracle/storage_rounding.h"

namespace plumbline::conformance {
namespace {

// [accumulation step * num_ranks + rank]
size_t ShareOf(const Evidence& evidence, int64_t a, int64_t rank) {
  return static_cast<size_t>(a * evidence.num_ranks + rank);
}

Values Scaled(const Values& values, double factor) {
  Values scaled = values;
  for (double& value : scaled) value *= factor;
  return scaled;
}

using WeightOfShare = std::function<double(int64_t a, int64_t rank)>;

Values Weighted(const Evidence& evidence, const WeightOfShare& weight) {
  Values sum(evidence.gradient.size());
  for (int64_t a = 0; a < evidence.num_accumulation_steps; ++a) {
    for (int64_t rank = 0; rank < evidence.num_ranks; ++rank) {
      const double factor = weight(a, rank);
      const Values& share = evidence.shares[ShareOf(evidence, a, rank)];
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += factor * share[i];
    }
  }
  return sum;
}

std::string Text(int64_t number) { return std::to_string(number); }

Predictions Factors(const Evidence& evidence, int64_t n) {
  if (n == 1 || evidence.gradient.empty()) return {};
  return {{"1/" + Text(n), Scaled(evidence.gradient, 1.0 / static_cast<double>(n))},
          {"times " + Text(n), Scaled(evidence.gradient, static_cast<double>(n))}};
}

double Bf16(double value) { return RoundToStorage(value, contract::DType::kBF16); }

// Which of the nested sums are kept in bf16, and in which order they are made.
struct Rounding {
  const char* what;
  bool share, inner, outer;
};

// The inner sum runs over ranks (by `ranks_inside`) or over accumulation steps.
Values RoundedSum(const Evidence& evidence, const Rounding& rounding, bool ranks_inside) {
  const int64_t num_outer = ranks_inside ? evidence.num_accumulation_steps : evidence.num_ranks;
  const int64_t num_inner = ranks_inside ? evidence.num_ranks : evidence.num_accumulation_steps;
  Values sums(evidence.gradient.size());
  for (size_t i = 0; i < sums.size(); ++i) {
    for (int64_t o = 0; o < num_outer; ++o) {
      double inner = 0;
      for (int64_t n = 0; n < num_inner; ++n) {
        const double share = evidence.shares[ranks_inside ? ShareOf(evidence, o, n) : ShareOf(evidence, n, o)][i];
        inner += rounding.share ? Bf16(share) : share;
        if (rounding.inner) inner = Bf16(inner);
      }
      sums[i] += inner;
      if (rounding.outer) sums[i] = Bf16(sums[i]);
    }
  }
  return sums;
}

Predictions Changed(const Evidence& evidence, const std::string& hypothesis) {
  Predictions predictions;
  for (const ChangedGradient& changed : evidence.changed) {
    if (changed.hypothesis == hypothesis) predictions.push_back({changed.what, changed.values});
  }
  return predictions;
}

}  // namespace

Predictions FactorOfRanks(const Evidence& evidence) { return Factors(evidence, evidence.num_ranks); }

Predictions FactorOfAccumulation(const Evidence& evidence) {
  return Factors(evidence, evidence.num_accumulation_steps);
}

Predictions FactorOfBoth(const Evidence& evidence) {
  if (evidence.num_ranks == 1 || evidence.num_accumulation_steps == 1) return {};
  return Factors(evidence, evidence.num_ranks * evidence.num_accumulation_steps);
}

Predictions SignFlipped(const Evidence& evidence) { return {{"", Scaled(evidence.gradient, -1)}}; }

Predictions MissingReduction(const Evidence& evidence) {
  if (evidence.num_ranks == 1 || evidence.shares.empty()) return {};
  Values own(evidence.gradient.size());
  for (const HeldRange& range : evidence.held) {
    for (int64_t a = 0; a < evidence.num_accumulation_steps; ++a) {
      const Values& share = evidence.shares[ShareOf(evidence, a, range.rank)];
      for (auto i = static_cast<size_t>(range.begin); i < static_cast<size_t>(range.end); ++i) own[i] += share[i];
    }
  }
  return {{"the sum is missing", own}, {"the mean is missing", Scaled(own, static_cast<double>(evidence.num_ranks))}};
}

Predictions DroppedMicroBatch(const Evidence& evidence) {
  Predictions predictions;
  const int64_t steps = evidence.num_accumulation_steps;
  if (evidence.shares.empty() || steps == 1) return predictions;
  for (int64_t a = 0; a < steps; ++a) {
    predictions.push_back({"number " + Text(a) + " is missing",
                           Weighted(evidence, [&](int64_t other, int64_t) { return other == a ? 0 : 1; })});
    if (steps > 2) {
      predictions.push_back({"only number " + Text(a) + " is there",
                             Weighted(evidence, [&](int64_t other, int64_t) { return other == a ? 1 : 0; })});
    }
    for (int64_t rank = 0; evidence.num_ranks > 1 && rank < evidence.num_ranks; ++rank) {
      predictions.push_back({"number " + Text(a) + " of rank " + Text(rank) + " is missing",
                             Weighted(evidence, [&](int64_t b, int64_t r) { return b == a && r == rank ? 0 : 1; })});
    }
  }
  return predictions;
}

Predictions RepeatedMicroBatch(const Evidence& evidence) {
  Predictions predictions;
  const int64_t steps = evidence.num_accumulation_steps;
  if (evidence.shares.empty() || steps == 1) return predictions;
  for (int64_t a = 0; a < steps; ++a) {
    predictions.push_back({"number " + Text(a) + " counts twice",
                           Weighted(evidence, [&](int64_t other, int64_t) { return other == a ? 2 : 1; })});
    for (int64_t b = 0; b < steps; ++b) {
      if (a == b) continue;
      predictions.push_back({"number " + Text(a) + " in the place of number " + Text(b),
                             Weighted(evidence, [&](int64_t c, int64_t) { return c == a   ? 2
                                                                                 : c == b ? 0
                                                                                          : 1; })});
    }
    predictions.push_back({"number " + Text(a) + " in the place of all", Weighted(evidence, [&](int64_t c, int64_t) {
                             return c == a ? static_cast<double>(steps) : 0;
                           })});
  }
  if (steps > 2) {
    predictions.push_back(
        {"all but the first count twice", Weighted(evidence, [](int64_t a, int64_t) { return a == 0 ? 1 : 2; })});
  }
  // Running sums that are added again: a gradient that is not cleared between micro-batches and is added each time.
  predictions.push_back({"each counts once for every later one as well",
                         Weighted(evidence, [&](int64_t a, int64_t) { return static_cast<double>(steps - a); })});
  return predictions;
}

Predictions MissingRank(const Evidence& evidence) {
  Predictions predictions;
  if (evidence.shares.empty() || evidence.num_ranks == 1) return predictions;
  for (int64_t rank = 0; rank < evidence.num_ranks; ++rank) {
    predictions.push_back(
        {"rank " + Text(rank), Weighted(evidence, [&](int64_t, int64_t other) { return other == rank ? 0 : 1; })});
  }
  return predictions;
}

Predictions RepeatedRank(const Evidence& evidence) {
  Predictions predictions;
  if (evidence.shares.empty() || evidence.num_ranks == 1) return predictions;
  for (int64_t q = 0; q < evidence.num_ranks; ++q) {
    predictions.push_back({"rank " + Text(q) + " counts twice",
                           Weighted(evidence, [&](int64_t, int64_t other) { return other == q ? 2 : 1; })});
    for (int64_t r = 0; r < evidence.num_ranks; ++r) {
      if (r == q) continue;
      predictions.push_back({"rank " + Text(q) + " in the place of rank " + Text(r),
                             Weighted(evidence, [&](int64_t, int64_t c) { return c == q   ? 2
                                                                                 : c == r ? 0
                                                                                          : 1; })});
    }
  }
  return predictions;
}

Predictions MeanOfMeans(const Evidence& evidence) {
  Predictions predictions;
  if (evidence.shares.size() < 2 || evidence.share_tokens.size() != evidence.shares.size()) return predictions;
  double tokens = 0;
  std::vector<double> of_rank(static_cast<size_t>(evidence.num_ranks));
  std::vector<double> of_step(static_cast<size_t>(evidence.num_accumulation_steps));
  for (int64_t a = 0; a < evidence.num_accumulation_steps; ++a) {
    for (int64_t rank = 0; rank < evidence.num_ranks; ++rank) {
      const double count = evidence.share_tokens[ShareOf(evidence, a, rank)];
      of_rank[static_cast<size_t>(rank)] += count;
      of_step[static_cast<size_t>(a)] += count;
      tokens += count;
    }
  }
  const auto mean = [&](double parts, double count) { return tokens / (parts * count); };
  const auto num_ranks = static_cast<double>(evidence.num_ranks);
  const auto num_steps = static_cast<double>(evidence.num_accumulation_steps);
  predictions.push_back({"over micro-batches of ranks", Weighted(evidence, [&](int64_t a, int64_t rank) {
                           return mean(num_ranks * num_steps, evidence.share_tokens[ShareOf(evidence, a, rank)]);
                         })});
  if (num_ranks > 1) {
    predictions.push_back({"over ranks", Weighted(evidence, [&](int64_t, int64_t rank) {
                             return mean(num_ranks, of_rank[static_cast<size_t>(rank)]);
                           })});
  }
  if (num_steps > 1) {
    predictions.push_back({"over accumulation steps", Weighted(evidence, [&](int64_t a, int64_t) {
                             return mean(num_steps, of_step[static_cast<size_t>(a)]);
                           })});
  }
  return predictions;
}

Predictions LowPrecision(const Evidence& evidence) {
  if (evidence.gradient.empty()) return {};
  Values rounded = evidence.gradient;
  for (double& value : rounded) value = Bf16(value);
  Predictions predictions = {{"the whole gradient", std::move(rounded)}};
  if (evidence.shares.size() < 2) return predictions;
  constexpr Rounding kRoundings[] = {{"each micro-batch", true, false, false},
                                     {"the sums over ranks", false, true, false},
                                     {"the sums over accumulation steps", false, false, true},
                                     {"each micro-batch and all sums", true, true, true}};
  for (const Rounding& rounding : kRoundings) {
    predictions.push_back({rounding.what, RoundedSum(evidence, rounding, /*ranks_inside=*/true)});
    // Names of inner and outer change places with the order.
    const Rounding other{rounding.what, rounding.share, rounding.outer, rounding.inner};
    predictions.push_back({rounding.what, RoundedSum(evidence, other, /*ranks_inside=*/false)});
  }
  return predictions;
}

Predictions NeighbourData(const Evidence& evidence) { return Changed(evidence, "neighbour_data"); }

Predictions StaleGradient(const Evidence& evidence) { return Changed(evidence, "stale_gradient"); }

}  // namespace plumbline::conformance
