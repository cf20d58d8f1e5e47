// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/skipped_start.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "conformance/contract/case_file.h"
#include "conformance/oracle/update_formula.h"
#include "conformance/runner/loss_scalers.h"

namespace plumbline::conformance {
namespace {

using contract::RealParameterState;

// The token that begins a sample of the first step and is in the fewest samples of it.
int32_t ChooseToken(const contract::Batches& batches) {
  const int64_t step = batches.first_step;
  const auto begin = [&](int64_t sample) { return batches.tokens.begin() + batches.Index(step, sample, 0); };
  const auto count = [&](int32_t token) {
    int64_t samples = 0;
    for (int64_t sample = 0; sample < batches.batch; ++sample) {
      const auto end = begin(sample) + batches.positions;
      samples += std::find(begin(sample), end, token) != end;
    }
    return samples;
  };
  int64_t chosen = 0;
  for (int64_t sample = 1; sample < batches.batch; ++sample) {
    if (count(*begin(sample)) < count(*begin(chosen))) chosen = sample;
  }
  return *begin(chosen);
}

// Another token in its place in the step after the first.
contract::Batches WithoutInNextStep(contract::Batches batches, int32_t token, int64_t vocab) {
  const auto next = batches.tokens.begin() + batches.Index(batches.first_step + 1, 0, 0);
  std::replace(next, batches.tokens.end(), token, static_cast<int32_t>((token + 1) % vocab));
  return batches;
}

bool NeedsNormsOfWeights(const contract::RunConfig& config) {
  return config.optimizer == contract::OptimizerKind::kLamb ||
         config.adaptive_clipping.kind == contract::AdaptiveClipping::Kind::kUnit;
}

SkippedStart StartWithNan(const Problem& problem, RealStart start, const contract::Batches& batches) {
  const int64_t width = problem.model.real().width;
  const int32_t token = ChooseToken(batches);
  std::fill_n(start.state.front().master.begin() + token * width, width, NAN);
  SkippedStart skipped{"nan", UntiedModel(problem.model), std::make_shared<const RealStart>(std::move(start))};
  if (NeedsNormsOfWeights(problem.plain)) return skipped;
  skipped.batches =
      std::make_shared<const contract::Batches>(WithoutInNextStep(batches, token, problem.model.real().vocab));
  return skipped;
}

// The state's values of a parameter of UntiedModel; null where there is none.
std::vector<float>* MasterOf(const Problem& problem, RealStart& start, std::string_view name) {
  const std::vector<contract::ParameterSpec> parameters = contract::Parameters(UntiedModel(problem.model));
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].name == name) return &start.state[i].master;
  }
  return nullptr;
}

constexpr const char* kLastNorm = "norm.weight";

// The label with the least weight in the loss of the first step, and the share of the others.
struct RareLabel {
  int32_t token = 0;
  double others = 0;
};

RareLabel RarestLabel(const contract::Batches& batches, int64_t vocab) {
  std::vector<int64_t> weights(static_cast<size_t>(vocab));
  int64_t sum = 0;
  for (int64_t i = batches.Index(batches.first_step, 0, 0); i < batches.Index(batches.first_step + 1, 0, 0); ++i) {
    const auto place = static_cast<size_t>(i);
    weights[static_cast<size_t>(batches.labels[place])] += batches.loss_weights[place];
    sum += batches.loss_weights[place];
  }
  const auto rarest = std::min_element(weights.begin(), weights.end());
  return {static_cast<int32_t>(rarest - weights.begin()), 1 - static_cast<double>(*rarest) / static_cast<double>(sum)};
}

// Two channels of the embedding are so large that the last norm sees nothing else: after its division both are
// NormedChannel() in every row. The norm's weight of the second passes on, and by it the head gives all probability to
// one token. The weight of the first is 0: it takes part in no logit, and no gradient goes on through it, so that the
// head may hold anything there. With +-kLarge the gradient at the norm's output in that channel is 2 kLarge (p - y) of
// the token, in one row a number of fp32, divided by the number of tokens or not. Its sum over the rows with another
// label, times the channel's value, is the gradient of the norm's weight: more than fp32 holds, with one sign.
constexpr float kChannel = 1024, kLogit = 30, kLarge = 1.6e38f;

// (c - mean) / deviation of two channels c among d, or c / root of the mean square.
double NormedChannel(const contract::ModelSpec& model) {
  const auto width = static_cast<double>(model.real().width);
  return std::sqrt(model.kind() == contract::Family::kGpt2 ? (width - 2) / 2 : width / 2);
}

// By a fifth at least. With dropout some rows lack one of the channels.
bool Overflows(const contract::ModelSpec& model, double share) {
  constexpr double kMargin = 1.2;
  const double kept = 1 - model.real().dropout;
  return 2 * double{kLarge} * share * kept * kept * NormedChannel(model) >
         kMargin * static_cast<double>(std::numeric_limits<float>::max());
}

SkippedStart StartWithInf(const Problem& problem, RealStart start, int32_t token) {
  const int64_t width = problem.model.real().width;
  const auto set_rows = [&](std::vector<float>& values, float first, float second) {
    for (size_t i = 0; i < values.size(); i += static_cast<size_t>(width)) {
      values[i] = first;
      values[i + 1] = second;
    }
  };
  set_rows(start.state.front().master, kChannel, kChannel);
  set_rows(*MasterOf(problem, start, kLastNorm), 0, 1);
  if (std::vector<float>* bias = MasterOf(problem, start, "norm.bias")) set_rows(*bias, 0, 0);
  std::vector<float>& head = *MasterOf(problem, start, "head.weight");
  set_rows(head, -kLarge, 0);
  head[static_cast<size_t>(token * width)] = kLarge;
  head[static_cast<size_t>(token * width + 1)] = kLogit;
  return {"inf", UntiedModel(problem.model), std::make_shared<const RealStart>(std::move(start))};
}

bool HasStartWithInf(const Problem& problem, double share) {
  const std::vector<contract::ParameterSpec> parameters = contract::Parameters(problem.model);
  const bool trains_norm = std::any_of(parameters.begin(), parameters.end(), [](const auto& parameter) {
    return parameter.name == kLastNorm && !parameter.frozen;
  });
  return trains_norm && Overflows(problem.model, share) &&
         (!problem.model.has_tied_head() || IsExempt(problem.plain, GroupOf(problem.plain, kLastNorm)));
}

}  // namespace

contract::ModelSpec UntiedModel(const contract::ModelSpec& model) {
  contract::ModelSpec untied = model;
  if (model.has_tied_head()) untied.gpt2().tied_head = false;
  return untied;
}

std::vector<RealParameterState> UntiedState(const Problem& problem, std::vector<RealParameterState> state) {
  if (!problem.model.has_tied_head()) return state;
  const std::vector<contract::ParameterSpec> parameters = contract::Parameters(UntiedModel(problem.model));
  const auto head = std::find_if(parameters.begin(), parameters.end(),
                                 [](const contract::ParameterSpec& entry) { return entry.name == "head.weight"; });
  RealParameterState copy = state.front();  // embed.weight is the first parameter
  if (contract::HasMoment(problem.plain)) copy.moment.resize(copy.master.size());
  if (contract::HasSecondMoment(problem.plain)) copy.second_moment.resize(copy.master.size());
  state.insert(state.begin() + (head - parameters.begin()), std::move(copy));
  return state;
}

bool CountsUpdates(const contract::RunConfig& config) {
  return contract::HasSecondMoment(config) || contract::HasNormHistory(config) || contract::HasDynamicLossScale(config);
}

std::vector<SkippedStart> MakeSkippedStarts(const Problem& problem, uint64_t seed, const contract::TokenSource& source,
                                            const RealStart& before, int64_t step) {
  const contract::Batches batches =
      contract::MakeBatches(source, problem.model, {seed, step, 2, problem.plain.train_batch_size});
  const RealStart untied{UntiedState(problem, before.state), before.num_updates, before.norm_history,
                         SkippedLossScaler(problem.fp16_dynamic)};
  std::vector<SkippedStart> starts = {StartWithNan(problem, untied, batches)};
  const RareLabel rare = RarestLabel(batches, problem.model.real().vocab);
  if (HasStartWithInf(problem, rare.others)) starts.push_back(StartWithInf(problem, untied, rare.token));
  return starts;
}

}  // namespace plumbline::conformance
