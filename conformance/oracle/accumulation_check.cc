// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/accumulation_check.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <utility>

#include "conformance/contract/dtype.h"
#include "conformance/contract/run_config.h"
#include "conformance/oracle/number_text.h"
#include "conformance/oracle/storage_rounding.h"

namespace plumbline::conformance {
namespace {

using contract::TensorKind;
using reports::CheckOutcome;
using Sights = std::span<const StepSight>;

// Of the 24 of fp32, those that the type has not. What fp16 holds with a loss scale, a power of two, has no more after
// it is divided out.
uint32_t BitsBelow(contract::DType storage) { return storage == contract::DType::kF16 ? 0x1FFF : 0xFFFF; }

std::string Text(double value) { return ShortText(value, 3); }

const std::vector<double>& Gradient(const StepSight& sight, size_t tensor) {
  return sight.of(TensorKind::kGradient)[tensor];
}

// What keeps the sights from being looked at, or nothing.
std::string ShapeProblem(const contract::ModelSpec& model, Sights sights, const char* who) {
  for (const StepSight& sight : sights) {
    const auto& tensors = sight.of(TensorKind::kGradient);
    for (const contract::ParameterSpec& parameter : contract::Parameters(model)) {
      const auto tensor = static_cast<size_t>(parameter.tensor_id);
      const auto numel = static_cast<size_t>(parameter.frozen ? 0 : parameter.numel());
      if (tensor < tensors.size() && tensors[tensor].size() == numel) continue;
      return std::string(who) + " has no whole gradient of " + parameter.name;
    }
  }
  return "";
}

bool IsFinite(const StepSight& sight, size_t tensor) {
  const std::vector<double>& values = Gradient(sight, tensor);
  return std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
}

bool IsFinite(Sights sights, size_t tensor) {
  return std::all_of(sights.begin(), sights.end(), [&](const StepSight& sight) { return IsFinite(sight, tensor); });
}

// The first step in which the gradient of a tensor is not finite throughout and the plain engine's is, or -1. Where
// that is not either, fp32 does not hold it.
int64_t FirstLost(Sights plain, Sights candidate, size_t tensor) {
  for (size_t s = 0; s < candidate.size(); ++s) {
    if (!IsFinite(candidate[s], tensor) && IsFinite(plain[s], tensor)) return candidate[s].step;
  }
  return -1;
}

// The first step in which storage holds all elements.
int64_t FirstInStorage(Sights sights, size_t tensor) {
  for (size_t s = 0; s < sights.size(); ++s) {
    const BitCount count = CountBits(sights.subspan(s, 1), tensor);
    if (count.not_zero > 0 && count.in_storage == count.not_zero) return sights[s].step;
  }
  return sights.front().step;
}

RealResult Ended(CheckOutcome outcome, const std::string& detail) {
  return {{"accumulation", outcome, 0, detail}, std::nullopt};
}

void Report(RealResult& result, int64_t step, const std::string& tensor, const std::string& detail) {
  result.check.outcome = CheckOutcome::kFail;
  if (!result.divergence) {
    result.divergence = Divergence{step, "accumulation", tensor, 0, detail};
    result.check.detail = "step " + std::to_string(step) + ": gradient of " + tensor + ": " + detail;
  }
  ++result.divergence->num_tensors;
}

std::string Describe(const BitCount& count, contract::DType storage) {
  return std::string(contract::StorageName(storage)) + " holds " + std::to_string(count.in_storage) + " of its " +
         std::to_string(count.not_zero) + " elements that are not zero (" + std::to_string(count.distinct) +
         " different); of sums in fp32 it holds " + Text(kMostSumsInStorage) +
         " at most, and so many by chance once in 10^" + Text(std::floor(-count.log_chance() / std::log(10.0)));
}

}  // namespace

bool AddsShares(const contract::RunConfig& config) {
  return IsRoundedByStorage(config.storage) && config.accumulation_steps * config.data_degree > 1;
}

double BitCount::share() const {
  return not_zero == 0 ? 0 : static_cast<double>(in_storage) / static_cast<double>(not_zero);
}

double BitCount::log_chance() const {
  // Chernoff's bound of the binomial distribution: exp(-n D), D the divergence of what was seen from the most likely.
  const double seen = share();
  if (!(seen > kMostSumsInStorage)) return 0;
  const double rest = seen < 1 ? (1 - seen) * std::log((1 - seen) / (1 - kMostSumsInStorage)) : 0;
  return -static_cast<double>(distinct) * (seen * std::log(seen / kMostSumsInStorage) + rest);
}

bool BitCount::could_be_unlikely() const {
  return static_cast<double>(distinct) * std::log(kMostSumsInStorage) <= std::log(kAccumulationFalseAlarmRate);
}

BitCount CountBits(Sights sights, size_t tensor) {
  BitCount count;
  std::set<double> magnitudes;
  for (const StepSight& sight : sights) {
    for (const double value : Gradient(sight, tensor)) {
      if (value == 0) continue;
      ++count.not_zero;
      const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
      count.in_storage += std::isfinite(value) && (bits & BitsBelow(sight.storage)) == 0 ? 1 : 0;
      if (!std::isnan(value)) magnitudes.insert(std::abs(value));  // a set has no place for NaN
    }
  }
  count.distinct = static_cast<int64_t>(magnitudes.size());
  return count;
}

std::vector<size_t> TensorsWithManyShares(const contract::ModelSpec& model) {
  std::vector<size_t> tensors;
  for (const contract::ParameterSpec& parameter : contract::Parameters(model)) {
    const bool is_by_token = parameter.name == "embed.weight" && !model.has_tied_head();
    if (parameter.frozen || is_by_token || parameter.name == "pos.weight" || parameter.name == "unused.weight")
      continue;
    tensors.push_back(static_cast<size_t>(parameter.tensor_id));
  }
  return tensors;
}

RealResult CheckAccumulation(const contract::ModelSpec& model, Sights plain, Sights candidate) {
  if (candidate.size() != plain.size()) {
    return Ended(CheckOutcome::kFail, "the candidate has " + std::to_string(candidate.size()) +
                                          " steps, the plain engine " + std::to_string(plain.size()));
  }
  for (const auto& [sights, who] :
       {std::pair<Sights, const char*>{plain, "the plain engine"}, {candidate, "the candidate"}}) {
    if (const std::string problem = ShapeProblem(model, sights, who); !problem.empty()) {
      return Ended(CheckOutcome::kFail, problem);
    }
  }
  const std::vector<contract::ParameterSpec> parameters = contract::Parameters(model);
  RealResult result = Ended(CheckOutcome::kPass, "");
  const std::vector<size_t> tensors = TensorsWithManyShares(model);
  size_t num_judged = 0;
  double largest = 0, largest_plain = 0;
  std::string nearest;
  for (const size_t tensor : tensors) {
    const std::string& name = parameters[tensor].name;
    if (const int64_t step = FirstLost(plain, candidate, tensor); step >= 0) {
      Report(result, step, name, "is not finite");
    }
    if (!IsFinite(candidate, tensor)) continue;
    const BitCount of_plain = CountBits(plain, tensor);
    const BitCount count = CountBits(candidate, tensor);
    const bool is_shown = IsFinite(plain, tensor) && of_plain.not_zero > 0 && of_plain.share() <= kMostSumsInStorage;
    if (!is_shown || !count.could_be_unlikely()) continue;
    ++num_judged;
    result.check.compared += count.not_zero;
    if (!(count.log_chance() > std::log(kAccumulationFalseAlarmRate))) {
      Report(result, FirstInStorage(candidate, tensor), name, Describe(count, candidate.front().storage));
    }
    largest_plain = std::max(largest_plain, of_plain.share());
    if (count.share() < largest) continue;
    largest = count.share();
    nearest = name;
  }
  if (result.check.outcome == CheckOutcome::kFail) {
    const int64_t num_tensors = result.divergence->num_tensors;
    if (num_tensors > 1) result.check.detail += "; in " + std::to_string(num_tensors) + " tensors";
    return result;
  }
  if (num_judged == 0) {
    return Ended(CheckOutcome::kVacuous, "no tensor has elements enough to show in which type its gradient was added");
  }
  result.check.detail = std::to_string(num_judged) + " of " + std::to_string(tensors.size()) + " tensors; " +
                        std::string(contract::StorageName(candidate.front().storage)) + " holds " + Text(largest) +
                        " of the elements of " + nearest + " and less of the others', at most " + Text(largest_plain) +
                        " of the plain engine's";
  return result;
}

}  // namespace plumbline::conformance
