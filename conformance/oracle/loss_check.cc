// SPDX-License-Identifier: Apache-2.0
// CheckLosses and CheckTrajectory: scalars, of which there are few, so that the limits say themselves how little a few
// scalars show (docs/tolerance.md, "Losses" and "Trajectories").
#include <algorithm>
#include <cmath>
#include <functional>

#include "conformance/oracle/gradient_limit.h"
#include "conformance/oracle/number_text.h"
#include "conformance/oracle/quantiles.h"
#include "conformance/oracle/real_check.h"
#include "conformance/oracle/storage_rounding.h"

namespace plumbline::conformance {
namespace {

using reports::CheckOutcome;
using Losses = std::span<const double>;

// A sum of n positive terms in fp32 is off by n half ulps at most, in any order.
double SumBound(int64_t terms) { return static_cast<double>(terms) * HalfUlp(contract::DType::kF32); }

// Losses of single steps are compared some ten thousand times in a run of verify over twenty seeds and trajectories
// some hundred times, where regions of gradients are compared a million times: rates for the same expectation.
constexpr double kLossFalseAlarmRate = 1e-7;
constexpr double kTrajectoryFalseAlarmRate = 1e-6;

std::string Text(double value) { return ShortText(value, 4); }

RealResult Ended(const char* check, CheckOutcome outcome, int64_t compared, const std::string& detail) {
  return {{check, outcome, compared, detail}, std::nullopt};
}

RealResult Failed(const char* check, int64_t compared, int64_t step, const std::string& detail) {
  RealResult result = Ended(check, CheckOutcome::kFail, compared, "step " + std::to_string(step) + ": loss " + detail);
  result.divergence = Divergence{step, "loss", "", 0, detail};
  return result;
}

using Step = std::function<int64_t(size_t)>;  // of the loss with this index

// The first loss that is not finite, in words, or nothing.
std::string NotFinite(const std::string& who, Losses losses, const Step& step) {
  for (size_t i = 0; i < losses.size(); ++i) {
    if (std::isfinite(losses[i])) continue;
    return "step " + std::to_string(step(i)) + ": loss of " + who + " is not finite";
  }
  return "";
}

// Why distances from the truth cannot be taken, relative to it, or nothing.
std::string WhyNoDistances(Losses truth, const Step& step) {
  if (truth.size() < 2) return "the truth has fewer than two steps";
  if (const std::string odd = NotFinite("the truth", truth, step); !odd.empty()) return odd;
  const auto zero = std::find(truth.begin(), truth.end(), 0.0);
  if (zero == truth.end()) return "";
  return "step " + std::to_string(step(static_cast<size_t>(zero - truth.begin()))) +
         ": loss of the truth is 0, and distances are relative to it";
}

// Why nothing can be said of a trajectory, or nothing.
std::string WhyNoTrajectory(Losses truth, std::span<const std::vector<double>> drifted) {
  const Step step = [](size_t i) { return static_cast<int64_t>(i); };
  if (const std::string why = WhyNoDistances(truth, step); !why.empty()) return why;
  if (drifted.size() < 2) return "there are fewer than two disturbed plain runs";
  for (size_t run = 0; run < drifted.size(); ++run) {
    const std::string who = "disturbed plain run " + std::to_string(run);
    if (const std::string odd = NotFinite(who, drifted[run], step); !odd.empty()) return odd;
    if (drifted[run].size() == truth.size()) continue;
    return who + " has " + std::to_string(drifted[run].size()) + " steps, the truth " + std::to_string(truth.size());
  }
  if (truth.back() < truth.front()) return "";
  return "the truth does not learn: its loss is " + ShortText(truth.front(), 4) + " in the first step and " +
         ShortText(truth.back(), 4) + " in the last";
}

std::vector<double> LossesOf(std::span<const StepSight> sights) {
  std::vector<double> losses;
  for (const StepSight& sight : sights) losses.push_back(sight.loss);
  return losses;
}

// Distances from the truth, relative to it.
std::vector<double> Distances(Losses truth, Losses losses) {
  std::vector<double> distances;
  for (size_t i = 0; i < truth.size(); ++i) distances.push_back((losses[i] - truth[i]) / std::abs(truth[i]));
  return distances;
}

double PooledDistance(Losses truth, Losses plain, Losses other_plain) {
  return std::hypot(RootMeanSquare(Distances(truth, plain)), RootMeanSquare(Distances(truth, other_plain))) /
         std::sqrt(2.0);
}

// The root of the mean, over runs and steps, of the squared relative distance.
double PooledDrift(Losses truth, std::span<const std::vector<double>> drifted) {
  std::vector<double> distances;
  for (const std::vector<double>& losses : drifted) distances.push_back(RootMeanSquare(Distances(truth, losses)));
  return RootMeanSquare(distances);
}

}  // namespace

RealResult CheckLosses(const Yardstick& yardstick, std::span<const StepSight> candidate) {
  constexpr const char* kName = "loss";
  const std::vector<double> truth = LossesOf(yardstick.truth);
  const std::vector<double> plain = LossesOf(yardstick.plain);
  const std::vector<double> other = LossesOf(yardstick.other_plain);
  const size_t num_steps = truth.size();
  if (plain.size() != num_steps || other.size() != num_steps || candidate.size() != num_steps) {
    return Ended(kName, CheckOutcome::kFail, 0, "the four have different numbers of steps");
  }
  const Step step_of = [&](size_t i) { return yardstick.truth[i].step; };
  for (const std::string& why : {WhyNoDistances(truth, step_of), NotFinite("a plain engine", plain, step_of),
                                 NotFinite("the other plain engine", other, step_of)}) {
    if (!why.empty()) return Ended(kName, CheckOutcome::kVacuous, 0, why);
  }
  const contract::DType storage = candidate.front().storage;
  int64_t longest = 2;
  for (const StepSight& sight : yardstick.truth) longest = std::max(longest, sight.tokens);
  // Two plain engines in 16 bits can share every rounding but those of the sum, so they count as one.
  const double chance = std::sqrt(FisherUpperQuantile(1, static_cast<double>(num_steps), kLossFalseAlarmRate));
  const double spread = EngineSpread(storage, longest);
  const double pooled = PooledDistance(truth, plain, other);
  const double floor = IsRoundedByStorage(storage) ? HalfUlp(storage) : SumBound(longest);
  const double limit = std::max(floor, spread * chance * pooled);
  int64_t compared = 0;
  double worst = 0;
  for (size_t i = 0; i < num_steps; ++i) {
    compared += 2;
    const int64_t step = candidate[i].step;
    if (step != yardstick.truth[i].step) {
      return Failed(kName, compared, step, "is compared with step " + std::to_string(yardstick.truth[i].step));
    }
    if (candidate[i].tokens != yardstick.truth[i].tokens) {
      return Failed(kName, compared, step,
                    "is over " + std::to_string(candidate[i].tokens) + " tokens, the truth over " +
                        std::to_string(yardstick.truth[i].tokens));
    }
    const double distance = std::abs(candidate[i].loss - truth[i]) / std::abs(truth[i]);
    if (!(distance <= limit)) {
      return Failed(kName, compared, step,
                    "is " + Text(candidate[i].loss) + ", the truth " + Text(truth[i]) + ": relative distance " +
                        Text(distance) + ", limit " + Text(limit));
    }
    worst = std::max(worst, distance);
  }
  if (!(limit < 1)) return Ended(kName, CheckOutcome::kVacuous, compared, "a loss of zero would pass");
  return Ended(kName, CheckOutcome::kPass, compared,
               "largest relative distance " + Text(worst) + ", limit " + Text(limit));
}

RealResult CheckTrajectory(Losses truth, int64_t most_tokens, std::span<const std::vector<double>> drifted,
                           Losses candidate) {
  constexpr const char* kName = "trajectory";
  const size_t num_steps = truth.size();
  if (candidate.size() != num_steps) {
    return Ended(
        kName, CheckOutcome::kFail, 0,
        "the candidate has " + std::to_string(candidate.size()) + " steps, the truth " + std::to_string(num_steps));
  }
  if (const std::string why = WhyNoTrajectory(truth, drifted); !why.empty()) {
    return Ended(kName, CheckOutcome::kVacuous, 0, why);
  }
  const auto last = static_cast<int64_t>(num_steps) - 1;
  const auto compared = static_cast<int64_t>(num_steps) + 1;
  for (size_t i = 0; i < num_steps; ++i) {
    if (!std::isfinite(candidate[i])) return Failed(kName, compared, static_cast<int64_t>(i), "is not finite");
  }
  if (!(candidate.back() < candidate.front())) {
    return Failed(kName, compared, last,
                  "is " + Text(candidate.back()) + " in the end, " + Text(candidate.front()) + " in the beginning");
  }
  // Each run is one number at least, the candidate's at most: along a trajectory the distance keeps its sign.
  const double chance =
      std::sqrt(FisherUpperQuantile(1, static_cast<double>(drifted.size()), kTrajectoryFalseAlarmRate));
  // In fp32 the order of the loss's own sum is what differs between engines, and the floor covers it.
  const double spread = EngineSpread(contract::DType::kBF16, 2);
  const double limit = std::max(SumBound(most_tokens), spread * chance * PooledDrift(truth, drifted));
  const std::vector<double> distances = Distances(truth, candidate);
  const double distance = RootMeanSquare(distances);
  const std::string numbers = "relative distance from the truth " + Text(distance) + " (root mean square over " +
                              std::to_string(num_steps) + " steps), limit " + Text(limit);
  if (!(distance <= limit)) {
    const auto worst = std::max_element(distances.begin(), distances.end(),
                                        [](double a, double b) { return std::abs(a) < std::abs(b); });
    return Failed(kName, compared, worst - distances.begin(), "has " + numbers);
  }
  // How far the truth itself falls is what an engine that learns nothing would miss.
  const double fall = (truth.front() - truth.back()) / truth.front();
  if (!(limit < fall)) {
    return Ended(kName, CheckOutcome::kVacuous, compared,
                 numbers + "; the truth falls by " + Text(fall) + " only, so not to learn would pass");
  }
  return Ended(kName, CheckOutcome::kPass, compared, numbers + "; the truth falls by " + Text(fall));
}

}  // namespace plumbline::conformance
