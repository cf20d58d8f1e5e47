// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/skipped_start.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "conformance/contract/case_file.h"

namespace plumbline::conformance {
namespace {

using contract::RealParameterState;

struct Token {
  int64_t id = 0;
  bool in_next_step = false;
  int64_t num_samples = 0;  // of the step, that have it
};

// Of the tokens that begin a sample of the first of two steps.
Token ChooseToken(const contract::Batches& batches) {
  const auto has = [&](int64_t step, int64_t sample, int32_t token) {
    const auto begin = batches.tokens.begin() + batches.Index(step, sample, 0);
    return std::find(begin, begin + batches.positions, token) != begin + batches.positions;
  };
  const auto count = [&](int64_t step, int32_t token) {
    int64_t samples = 0;
    for (int64_t sample = 0; sample < batches.batch; ++sample) samples += has(step, sample, token);
    return samples;
  };
  const int64_t step = batches.first_step;
  std::vector<Token> tokens;
  for (int64_t sample = 0; sample < batches.batch; ++sample) {
    const int32_t token = batches.tokens[static_cast<size_t>(batches.Index(step, sample, 0))];
    tokens.push_back({token, count(step + 1, token) > 0, count(step, token)});
  }
  return *std::min_element(tokens.begin(), tokens.end(), [](const Token& a, const Token& b) {
    return std::tie(a.in_next_step, a.num_samples) < std::tie(b.in_next_step, b.num_samples);
  });
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

std::vector<SkippedStart> MakeSkippedStarts(const Problem& problem, uint64_t seed, const contract::TokenSource& source,
                                            const RealStart& before, int64_t step) {
  const contract::ModelSpec& model = problem.model;
  const Token token =
      ChooseToken(contract::MakeBatches(source, problem.model, {seed, step, 2, problem.plain.train_batch_size}));
  std::vector<std::pair<const char*, float>> values = {{"nan", NAN}};
  if (!model.has_tied_head()) values.insert(values.begin(), {"inf", HUGE_VALF});
  std::vector<SkippedStart> starts;
  for (const auto& [name, value] : values) {
    RealStart start{UntiedState(problem, before.state), before.num_updates, before.norm_history};
    std::fill_n(start.state.front().master.begin() + token.id * model.real().width, model.real().width, value);
    starts.push_back({name, UntiedModel(problem.model), std::make_shared<const RealStart>(std::move(start)),
                      !token.in_next_step && std::isnan(value)});
  }
  return starts;
}

}  // namespace plumbline::conformance
