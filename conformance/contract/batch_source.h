// SPDX-License-Identifier: Apache-2.0
// Makes the data of a case from any text file (bytes as tokens) or a token file, as docs/exact-family.md, "Data",
// states it. A batch is a function of (seed, step, sample); nothing is remembered between calls. Harness side only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "conformance/contract/batches.h"
#include "conformance/contract/case_file.h"
#include "conformance/contract/model_spec.h"

namespace plumbline::contract {

struct TokenSource {
  std::vector<int32_t> tokens;
  bool reduce_modulo_vocab = false;  // true for text
};

// A file that begins like a safetensors file and parses as one is a token file; anything else is text.
// InvalidArgument for an empty or unreadable file.
TokenSource ReadTokenSource(const std::filesystem::path& path);

// Why no case of the model can train on the source: it is shorter than positions + 1 tokens, or a token is outside the
// vocabulary. Nothing where it can.
std::optional<std::string> WhyNotTrainable(const TokenSource& source, const ModelSpec& model);

// Batches of the steps first_step ... first_step + steps - 1. InvalidArgument if the source is shorter than positions +
// 1 tokens, a token is outside the vocabulary, or in family exact N <= B.
struct BatchRequest {
  uint64_t seed = 0;
  int64_t first_step = 0;
  int64_t steps = 0;
  int64_t batch = 0;
};
Batches MakeBatches(const TokenSource& source, const ModelSpec& model, const BatchRequest& request);

// The same, or nothing after a stop request. A step whose batch has many divisors takes some seconds, since its weights
// must differ over all layouts; the request is seen within a step.
std::optional<Batches> MakeBatches(const TokenSource& source, const ModelSpec& model, const BatchRequest& request,
                                   const std::stop_token& stop);

// Number of weighted tokens of a step: the largest power of two that is at most 2/3 of batch * positions, half of that
// in odd steps.
int64_t NumWeightedTokens(int64_t batch, int64_t positions, int64_t step);

// Initial W, U and M (docs/exact-family.md, "Random draws").
std::vector<ParameterState> MakeInitialState(const ExactSpec& model, OptimizerKind optimizer, uint64_t seed);

// Tokens of a sample with unequal lengths (docs/semantics.md, "Family llama"): 1 to positions.
int64_t SampleLength(uint64_t seed, int64_t positions, int64_t step, int64_t sample);

// Initial master weights of a real family, with moments of zero where the optimizer keeps them (docs/semantics.md).
std::vector<RealParameterState> MakeInitialRealState(const ModelSpec& model, const RunConfig& config, uint64_t seed);

}  // namespace plumbline::contract
