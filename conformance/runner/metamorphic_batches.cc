// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/metamorphic_batches.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "conformance/contract/digest.h"

namespace plumbline::conformance {
namespace {

using contract::Batches;
using contract::RunConfig;

// Orders and choices: numbers without meaning, the same for the same seed.
class Words {
 public:
  explicit Words(uint64_t seed) : state_(contract::Mix(seed)) {}
  int64_t Below(int64_t count) { return static_cast<int64_t>(Next() % static_cast<uint64_t>(count)); }

 private:
  uint64_t Next() { return contract::Mix(state_ += 0x9E3779B97F4A7C15ull); }
  uint64_t state_;
};

template <typename Value>
void Shuffle(std::vector<Value>& values, Words& words) {
  for (size_t i = values.size(); i > 1; --i) {
    std::swap(values[i - 1], values[static_cast<size_t>(words.Below(static_cast<int64_t>(i)))]);
  }
}

// Where a sample is computed.
int64_t RankOf(int64_t sample, const RunConfig& config) {
  return sample / config.micro_batch_size % config.data_degree;
}
int64_t AccumulationStepOf(int64_t sample, const RunConfig& config) {
  return sample / config.micro_batch_size / config.data_degree;
}

std::vector<int64_t> SamplesOf(int64_t rank, const RunConfig& config) {
  std::vector<int64_t> samples;
  for (int64_t sample = 0; sample < config.train_batch_size; ++sample) {
    if (RankOf(sample, config) == rank) samples.push_back(sample);
  }
  return samples;
}

// `from` becomes sample `to` of the step.
void Put(const Batches& batches, int64_t step, int64_t from, int64_t to, Batches& result) {
  contract::CopySample(batches, {step, from}, result, {step, to});
}

template <typename Visit>
void ForEachStep(const Batches& batches, const Visit& visit) {
  for (int64_t step = batches.first_step; step < batches.first_step + batches.steps; ++step) visit(step);
}

std::vector<int32_t> Content(const Batches& batches, int64_t step, int64_t sample) {
  std::vector<int32_t> content = {static_cast<int32_t>(batches.Length(step, sample))};
  for (auto array : {&Batches::tokens, &Batches::labels, &Batches::loss_weights}) {
    const auto begin = (batches.*array).begin() + batches.Index(step, sample, 0);
    content.insert(content.end(), begin, begin + batches.positions);
  }
  return content;
}

// `place_of` says which of several places a sample is in.
template <typename PlaceOf>
bool MovesInEveryStep(const Batches& before, const Batches& after, const PlaceOf& place_of) {
  bool moves = before.steps > 0;
  ForEachStep(before, [&](int64_t step) {
    std::map<int64_t, std::multiset<std::vector<int32_t>>> old_samples, new_samples;
    for (int64_t sample = 0; sample < before.batch; ++sample) {
      old_samples[place_of(sample)].insert(Content(before, step, sample));
      new_samples[place_of(sample)].insert(Content(after, step, sample));
    }
    moves &= old_samples != new_samples;
  });
  return moves;
}

int64_t NumWeightedOf(const Batches& batches, int64_t sample) {
  const auto begin = batches.loss_weights.begin() + batches.Index(batches.first_step, sample, 0);
  return std::count_if(begin, begin + batches.positions, [](int32_t weight) { return weight != 0; });
}

// Numbers of items of `order` with this sum, or nothing: reachable[i] are the sums of the first i.
std::vector<int64_t> ItemsWithSum(const std::vector<int64_t>& counts, const std::vector<int64_t>& order, int64_t sum) {
  std::vector<std::vector<bool>> reachable(order.size() + 1, std::vector<bool>(static_cast<size_t>(sum) + 1, false));
  reachable[0][0] = true;
  for (size_t i = 0; i < order.size(); ++i) {
    const int64_t count = counts[static_cast<size_t>(order[i])];
    for (int64_t s = 0; s <= sum; ++s) {
      const auto at = static_cast<size_t>(s);
      reachable[i + 1][at] = reachable[i][at] || (s >= count && reachable[i][static_cast<size_t>(s - count)]);
    }
  }
  std::vector<int64_t> items;
  if (!reachable.back()[static_cast<size_t>(sum)]) return items;
  for (size_t i = order.size(); i-- > 0;) {
    if (reachable[i][static_cast<size_t>(sum)]) continue;
    items.push_back(order[i]);
    sum -= counts[static_cast<size_t>(order[i])];
  }
  return items;
}

using IsFirst = std::vector<bool>;  // by token of the step

// Half of the weighted tokens, whole samples.
IsFirst HalfOfSamples(const Batches& batches, Words& words) {
  std::vector<int64_t> counts, order(static_cast<size_t>(batches.batch));
  for (int64_t sample = 0; sample < batches.batch; ++sample) counts.push_back(NumWeightedOf(batches, sample));
  std::iota(order.begin(), order.end(), 0);
  Shuffle(order, words);
  IsFirst is_first(static_cast<size_t>(batches.batch * batches.positions), false);
  for (int64_t sample : ItemsWithSum(counts, order, NumWeighted(batches) / 2)) {
    std::fill_n(is_first.begin() + sample * batches.positions, batches.positions, true);
  }
  return is_first;
}

// About half of the tokens, of each sample another share.
IsFirst PartOfTokens(const Batches& batches, Words& words) {
  constexpr int64_t kQuarters = 4;
  IsFirst is_first;
  for (int64_t sample = 0; sample < batches.batch; ++sample) {
    const int64_t quarters = 1 + sample % 3;
    for (int64_t t = 0; t < batches.positions; ++t) is_first.push_back(words.Below(kQuarters) < quarters);
  }
  return is_first;
}

bool AllEqual(const std::vector<int64_t>& values) {
  return std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end();
}

// Both parts have tokens, and where there are several ranks or accumulation steps their shares differ.
bool IsUneven(const Batches& part, const Batches& other, const RunConfig& config) {
  std::vector<int64_t> by_rank(static_cast<size_t>(config.data_degree));
  std::vector<int64_t> by_step(static_cast<size_t>(config.accumulation_steps));
  for (int64_t sample = 0; sample < part.batch; ++sample) {
    const int64_t count = NumWeightedOf(part, sample);
    by_rank[static_cast<size_t>(RankOf(sample, config))] += count;
    by_step[static_cast<size_t>(AccumulationStepOf(sample, config))] += count;
  }
  return NumWeighted(part) > 0 && NumWeighted(other) > 0 && (by_rank.size() < 2 || !AllEqual(by_rank)) &&
         (by_step.size() < 2 || !AllEqual(by_step));
}

}  // namespace

Batches PermutedBatches(const Batches& batches, const RunConfig& config, uint64_t seed) {
  Batches permuted = batches;
  Words words(seed);
  ForEachStep(batches, [&](int64_t step) {
    for (int64_t rank = 0; rank < config.data_degree; ++rank) {
      const std::vector<int64_t> places = SamplesOf(rank, config);
      std::vector<int64_t> samples = places;
      Shuffle(samples, words);
      for (size_t i = 0; i < places.size(); ++i) Put(batches, step, samples[i], places[i], permuted);
    }
  });
  return permuted;
}

Batches RelabelledBatches(const Batches& batches, const RunConfig& config) {
  Batches relabelled = batches;
  ForEachStep(batches, [&](int64_t step) {
    for (int64_t rank = 0; rank < config.data_degree; ++rank) {
      const std::vector<int64_t> places = SamplesOf(rank, config);
      const std::vector<int64_t> samples = SamplesOf((rank + 1) % config.data_degree, config);
      for (size_t i = 0; i < places.size(); ++i) Put(batches, step, samples[i], places[i], relabelled);
    }
  });
  return relabelled;
}

bool MovesBetweenMicroBatches(const Batches& before, const Batches& after, const RunConfig& config) {
  return MovesInEveryStep(before, after, [&](int64_t sample) { return sample / config.micro_batch_size; });
}

bool MovesBetweenRanks(const Batches& before, const Batches& after, const RunConfig& config) {
  return MovesInEveryStep(before, after, [&](int64_t sample) { return RankOf(sample, config); });
}

std::optional<std::array<Batches, 2>> SplitBatches(const Batches& batches, const RunConfig& config, bool is_exact,
                                                   uint64_t seed) {
  constexpr int kMaxAttempts = 100;  // the first does, but for very few samples
  Words words(seed);
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    const IsFirst is_first = is_exact ? HalfOfSamples(batches, words) : PartOfTokens(batches, words);
    std::array<Batches, 2> parts = {batches, batches};
    for (size_t i = 0; i < is_first.size(); ++i) {
      parts[is_first[i] ? 1 : 0].loss_weights[i] = 0;
      if (is_exact) parts[is_first[i] ? 0 : 1].loss_weights[i] /= 2;  // 0, N or 5N, with half the N
    }
    if (is_exact && NumWeighted(parts[0]) != NumWeighted(parts[1])) continue;
    if (IsUneven(parts[0], parts[1], config)) return parts;
  }
  return std::nullopt;
}

Batches PaddedBatches(const Batches& batches, int64_t vocab) {
  Batches padded = batches;
  for (auto array : {&Batches::tokens, &Batches::labels}) {
    ForEachStep(batches, [&](int64_t step) {
      for (int64_t sample = 0; sample < batches.batch; ++sample) {
        for (int64_t t = batches.Length(step, sample); t < batches.positions; ++t) {
          int32_t& value = (padded.*array)[static_cast<size_t>(batches.Index(step, sample, t))];
          value = static_cast<int32_t>((value + 1) % vocab);
        }
      }
    });
  }
  return padded;
}

int64_t NumWeighted(const Batches& batches) {
  int64_t count = 0;
  for (int64_t sample = 0; sample < batches.batch; ++sample) count += NumWeightedOf(batches, sample);
  return count;
}

}  // namespace plumbline::conformance
