// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/gradient_limit.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "conformance/oracle/quantiles.h"
#include "conformance/oracle/storage_rounding.h"

namespace plumbline::conformance {
namespace {

using Errors = std::vector<RegionError> RegionHistory::*;
constexpr Errors kPlainEngines[] = {&RegionHistory::plain, &RegionHistory::other_plain};

// Slopes of isotropic errors have the size norm / sqrt(participation); this is how many times larger a region's are.
double Alignment(const RegionHistory& region) {
  std::vector<double> alignments;
  for (Errors engine : kPlainEngines) {
    for (size_t s = 0; s < region.truth.size(); ++s) {
      const RegionError& error = (region.*engine)[s];
      if (region.truth[s].null || !(error.norm > 0)) continue;
      alignments.push_back(error.slope / error.norm * std::sqrt(region.truth[s].participation));
    }
  }
  return RootMeanSquare(alignments);
}

double PooledNorm(const RegionHistory& region, Errors engine) {
  std::vector<double> norms;
  for (const RegionError& error : region.*engine) norms.push_back(error.norm);
  return RootMeanSquare(norms);
}

// Of the plain engine that makes the larger errors here: where they round in different places, both are legal.
double PooledNorm(const RegionHistory& region) {
  return std::max(PooledNorm(region, &RegionHistory::plain), PooledNorm(region, &RegionHistory::other_plain));
}

double LargestTail(const RegionHistory& region) {
  double largest = 0;
  for (Errors engine : kPlainEngines) {
    for (const RegionError& error : region.*engine) largest = std::max(largest, error.tail);
  }
  return largest;
}

// What is left of the logarithms of errors when each region's mean and each step's mean are taken away: some regions
// are harder than others, and some steps are harder for all of them; chance is what remains.
struct LogSpread {
  double squares = 0;
  double degrees = 0;
};

// logs: [region][step], at least two regions.
LogSpread SpreadOf(const std::vector<std::vector<double>>& logs) {
  const size_t num_steps = logs.front().size();
  std::vector<double> region_mean(logs.size(), 0);
  std::vector<double> step_mean(num_steps, 0);
  double mean = 0;
  for (size_t r = 0; r < logs.size(); ++r) {
    for (size_t s = 0; s < num_steps; ++s) {
      region_mean[r] += logs[r][s] / static_cast<double>(num_steps);
      step_mean[s] += logs[r][s] / static_cast<double>(logs.size());
      mean += logs[r][s] / static_cast<double>(logs.size() * num_steps);
    }
  }
  LogSpread spread;
  for (size_t r = 0; r < logs.size(); ++r) {
    for (size_t s = 0; s < num_steps; ++s) {
      const double residual = logs[r][s] - region_mean[r] - step_mean[s] + mean;
      spread.squares += residual * residual;
    }
  }
  spread.degrees = static_cast<double>((logs.size() - 1) * (num_steps - 1));
  return spread;
}

// Logarithms of one plain engine's norms; regions with a null step or an error of exactly zero say nothing.
std::vector<std::vector<double>> LogNorms(std::span<const RegionHistory> regions, bool vectors, Errors engine) {
  std::vector<std::vector<double>> logs;
  for (const RegionHistory& region : regions) {
    const std::vector<RegionError>& errors = region.*engine;
    const bool usable = !region.is_whole && region.is_vector == vectors && region.LiveInEveryStep() &&
                        std::all_of(errors.begin(), errors.end(), [](const RegionError& e) { return e.norm > 0; });
    if (!usable) continue;
    logs.emplace_back();
    for (const RegionError& error : errors) logs.back().push_back(std::log(error.norm));
  }
  return logs;
}

// Degrees of freedom of an error in one step, by how much its size varies from step to step; at least 1. The variance
// is taken at the upper end of what the data allow, and the two engines' are averaged, not pooled: they may share
// roundings.
double DegreesPerStep(std::span<const RegionHistory> regions, bool vectors) {
  constexpr double kLowTail = 1e-3;
  double variance = 0;
  for (Errors engine : kPlainEngines) {
    const std::vector<std::vector<double>> logs = LogNorms(regions, vectors, engine);
    if (logs.size() < 2) return 1;
    const LogSpread spread = SpreadOf(logs);
    const double sure = ChiSquaredLowerQuantile(spread.degrees, kLowTail);
    if (!(sure > 0)) return 1;
    variance += spread.squares / sure / 2;
  }
  return std::max(1.0, DegreesOfLogSpread(variance));
}

// What regions of one class, vectors or matrices, share.
struct ClassShape {
  double kurtosis = 0;   // mean of theirs
  double alignment = 1;  // the largest of theirs
  double degrees_per_step = 1;
};

ClassShape ShapeOf(std::span<const RegionHistory> regions, bool vectors) {
  ClassShape shape;
  double count = 0;
  for (const RegionHistory& region : regions) {
    if (region.is_whole || region.is_vector != vectors || !(region.evenness.kurtosis() > 0)) continue;
    shape.kurtosis += region.evenness.kurtosis();
    shape.alignment = std::max(shape.alignment, Alignment(region));
    ++count;
  }
  if (count > 0) shape.kurtosis /= count;
  shape.degrees_per_step = DegreesPerStep(regions, vectors);
  return shape;
}

// How many independent numbers make up a region's error over all steps: unbiased for independent normal errors of
// whatever sizes. A region's own kurtosis is that of few numbers, so half of it is taken from its class.
double DegreesOf(const RegionHistory& region, const ClassShape& shape) {
  constexpr double kNormalKurtosis = 3;
  const auto count = static_cast<double>(region.evenness.count());
  const double own = region.evenness.kurtosis();
  if (!(own > 0)) return std::max(1.0, count);
  const double kurtosis = region.is_whole ? own : (own + shape.kurtosis) / 2;
  return std::clamp(kNormalKurtosis * count / kurtosis, 1.0, count);
}

// How much more the two plain engines differ from each other than their legal spread and the regions' degrees of
// freedom explain, in the median region; at least 1. The logarithm of a ratio of two independent norms has twice the
// variance of one.
double Overdispersion(std::span<const RegionHistory> regions, const ClassShape& vectors, const ClassShape& matrices,
                      double engine_spread) {
  constexpr double kMedianOfASquaredNormal = 0.4549364;
  std::vector<double> squares;
  for (const RegionHistory& region : regions) {
    const double plain = PooledNorm(region, &RegionHistory::plain);
    const double other = PooledNorm(region, &RegionHistory::other_plain);
    if (region.is_whole || !(plain > 0 && other > 0)) continue;
    const double excess = std::max(0.0, std::abs(std::log(plain / other)) - std::log(engine_spread));
    const double degrees = DegreesOf(region, region.is_vector ? vectors : matrices);
    squares.push_back(excess * excess / (2 * LogSpreadOfDegrees(degrees)));
  }
  if (squares.empty()) return 1;
  const auto middle = squares.begin() + static_cast<int64_t>(squares.size() / 2);
  std::nth_element(squares.begin(), middle, squares.end());
  return std::max(1.0, *middle / kMedianOfASquaredNormal);
}

RegionLimit LimitOf(const RegionHistory& region, double degrees, double alignment, double half_ulp,
                    double engine_spread) {
  const auto num_steps = static_cast<double>(region.truth.size());
  const auto numel = static_cast<double>(region.numel);
  const double chance = std::sqrt(FisherUpperQuantile(degrees, degrees, kFalseAlarmRate));
  double floor = 0, tail_floor = 0, inverse_participation = 0, num_live = 0;
  for (const RegionTruth& truth : region.truth) {
    if (truth.null) continue;
    ++num_live;
    floor = half_ulp;
    tail_floor = std::max(tail_floor, half_ulp * truth.largest / truth.scale * std::sqrt(numel));
    inverse_participation += 1 / truth.participation;
  }
  RegionLimit limit;
  limit.plain_norm = PooledNorm(region);
  limit.norm = std::max(floor, engine_spread * chance * limit.plain_norm);
  // The largest of num_values normal values, over the median of the largest of as many.
  const double num_values = num_steps * numel;
  const double median_tail = std::numbers::ln2 / 2 / num_values;
  const double extremes = NormalUpperQuantile(kFalseAlarmRate / 2 / num_values) / NormalUpperQuantile(median_tail);
  limit.tail = std::max(tail_floor, engine_spread * chance * extremes * LargestTail(region));
  if (num_live == 0) return limit;
  // The mean of num_live slopes: its variance is the mean of theirs, divided by num_live.
  const double one_slope = limit.plain_norm * alignment * std::sqrt(inverse_participation / num_live / num_live);
  limit.slope = std::max(floor, engine_spread * chance * NormalUpperQuantile(kFalseAlarmRate / 2) * one_slope);
  return limit;
}

}  // namespace

bool RegionHistory::LiveInEveryStep() const {
  return std::none_of(truth.begin(), truth.end(), [](const RegionTruth& step) { return step.null; });
}

double EngineSpread(contract::DType storage, int64_t longest_sum) {
  if (IsRoundedByStorage(storage)) return 2;  // sqrt(4)
  if (longest_sum < 2) return 1;
  const auto terms = static_cast<double>(longest_sum);
  return std::max(1.0, std::sqrt((terms / 2 + 1) / std::log2(terms)));
}

std::vector<RegionLimit> RegionLimits(std::span<const RegionHistory> regions, contract::DType storage,
                                      double engine_spread) {
  const ClassShape vectors = ShapeOf(regions, true);
  const ClassShape matrices = ShapeOf(regions, false);
  const double overdispersion = Overdispersion(regions, vectors, matrices, engine_spread);
  std::vector<RegionLimit> limits;
  for (const RegionHistory& region : regions) {
    const ClassShape& shape = region.is_vector ? vectors : matrices;
    double degrees = DegreesOf(region, shape) / overdispersion;
    // In fp32 the roundings inside an engine's sums and statistics are its own, and where one of them is amplified (a
    // row of small variance, a large score) it alone makes the errors of many regions in that step. In 16 bits the
    // roundings to storage are much larger than those, and engines share most of them.
    if (!IsRoundedByStorage(storage)) {
      degrees = std::min(degrees, shape.degrees_per_step * static_cast<double>(region.truth.size()));
    }
    degrees = std::max(1.0, degrees);
    const double alignment = std::max(shape.alignment, region.is_whole ? Alignment(region) : 0);
    limits.push_back(LimitOf(region, degrees, alignment, HalfUlp(storage), engine_spread));
  }
  return limits;
}

}  // namespace plumbline::conformance
