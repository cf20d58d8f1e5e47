// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/batch_source.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numbers>
#include <optional>
#include <span>
#include <string>

#include "conformance/contract/error.h"
#include "conformance/contract/file_io.h"
#include "conformance/contract/random_stream.h"
#include "conformance/contract/strict_json.h"
#include "conformance/contract/tensor_file.h"

namespace plumbline::contract {
namespace {

constexpr int64_t kMaxAttempts = 10'000;
constexpr int64_t kHeavyWeight = 5;

// Shape of the data of one step and where its draws come from.
struct StepShape {
  uint64_t seed;
  int64_t step;
  int64_t batch;
  int64_t positions;
  int64_t num_weighted;  // N

  int64_t numel() const { return batch * positions; }
};

const HostTensor& TokensTensor(const TensorFile& file, const std::string& name) {
  const std::string allowed = "; allowed: exactly one, tokens, of one dimension";
  if (file.tensors.size() != 1) {
    Fail(ErrorCode::kInvalidArgument, name + ": holds " + std::to_string(file.tensors.size()) + " tensors" + allowed);
  }
  const HostTensor& tensor = file.tensors[0];
  if (tensor.name != "tokens" || tensor.shape.size() != 1) {
    Fail(ErrorCode::kInvalidArgument, name + ": holds tensor " + JsonQuote(tensor.name) + " of " +
                                          std::to_string(tensor.shape.size()) + " dimensions" + allowed);
  }
  constexpr DType kAllowed[] = {DType::kU8, DType::kU16, DType::kI32, DType::kI64};
  if (std::find(std::begin(kAllowed), std::end(kAllowed), tensor.dtype) == std::end(kAllowed)) {
    Fail(ErrorCode::kInvalidArgument,
         name + ": tokens is of type " + std::string(Name(tensor.dtype)) + "; allowed: U8, U16, I32, I64");
  }
  return tensor;
}

TokenSource TokensOf(const TensorFile& file, const std::string& name) {
  TokenSource source;
  for (int64_t token : ToInt64(TokensTensor(file, name))) {
    if (token < 0 || token > (int64_t{1} << 30)) {
      Fail(ErrorCode::kInvalidArgument, name + ": token " + std::to_string(source.tokens.size()) + " is " +
                                            std::to_string(token) + "; allowed: 0 to 2^30");
    }
    source.tokens.push_back(static_cast<int32_t>(token));
  }
  return source;
}

// A header length that fits the file and a header that begins like an object.
bool LooksLikeTensorFile(std::string_view content) {
  uint64_t header_bytes = 0;
  if (content.size() < sizeof(header_bytes) + 2) return false;
  std::memcpy(&header_bytes, content.data(), sizeof(header_bytes));
  return header_bytes >= 2 && header_bytes <= content.size() - sizeof(header_bytes) && content[8] == '{';
}

// Nothing where the file is no safetensors file: then it is a text, whatever its first bytes look like.
std::optional<TensorFile> AsTensorFile(std::string_view content, const std::string& name) {
  if (!LooksLikeTensorFile(content)) return std::nullopt;
  try {
    return ParseTensorFile(std::as_bytes(std::span(content.data(), content.size())), name);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Positions of the batch in the order of their random rank; ties by index.
std::vector<int64_t> RankedPositions(const StepShape& shape, int64_t attempt) {
  std::vector<std::pair<uint32_t, int64_t>> keyed(static_cast<size_t>(shape.numel()));
  for (int64_t i = 0; i < shape.numel(); ++i) {
    keyed[static_cast<size_t>(i)] = {Draw(shape.seed, Site::kPositionRank, shape.step, attempt, i), i};
  }
  std::sort(keyed.begin(), keyed.end());
  std::vector<int64_t> order;
  order.reserve(keyed.size());
  for (const auto& [key, index] : keyed) order.push_back(index);
  return order;
}

// The weighted positions: the best one of each sample first, then by rank, N in all.
std::vector<int64_t> ChoosePositions(const StepShape& shape, int64_t attempt) {
  const std::vector<int64_t> order = RankedPositions(shape, attempt);
  std::vector<bool> sample_seen(static_cast<size_t>(shape.batch));
  std::vector<int64_t> chosen;
  std::vector<int64_t> rest;
  for (int64_t index : order) {
    const auto sample = static_cast<size_t>(index / shape.positions);
    (sample_seen[sample] ? rest : chosen).push_back(index);
    sample_seen[sample] = true;
  }
  rest.resize(static_cast<size_t>(shape.num_weighted) - chosen.size());
  chosen.insert(chosen.end(), rest.begin(), rest.end());
  return chosen;
}

bool AllEqual(std::span<const int64_t> counts) {
  return std::all_of(counts.begin(), counts.end(), [&](int64_t count) { return count == counts.front(); });
}

// True if the counts differ over micro-batches, ranks and accumulation steps of this layout.
bool CountsDiffer(std::span<const int64_t> sample_counts, int64_t accumulation, int64_t data_degree) {
  const int64_t micro = static_cast<int64_t>(sample_counts.size()) / (accumulation * data_degree);
  std::vector<int64_t> per_micro(static_cast<size_t>(accumulation * data_degree));
  std::vector<int64_t> per_rank(static_cast<size_t>(data_degree));
  std::vector<int64_t> per_accumulation(static_cast<size_t>(accumulation));
  for (size_t sample = 0; sample < sample_counts.size(); ++sample) {
    const auto index = static_cast<int64_t>(sample) / micro;  // a * R + r
    per_micro[static_cast<size_t>(index)] += sample_counts[sample];
    per_rank[static_cast<size_t>(index % data_degree)] += sample_counts[sample];
    per_accumulation[static_cast<size_t>(index / data_degree)] += sample_counts[sample];
  }
  return !AllEqual(per_micro) && (data_degree == 1 || !AllEqual(per_rank)) &&
         (accumulation == 1 || !AllEqual(per_accumulation));
}

// False after a stop request.
bool CountsDifferInEveryLayout(std::span<const int64_t> sample_counts, const std::stop_token& stop) {
  const auto batch = static_cast<int64_t>(sample_counts.size());
  for (int64_t accumulation = 1; accumulation <= batch; ++accumulation) {
    if (batch % accumulation != 0) continue;
    for (int64_t data_degree = 1; data_degree <= batch / accumulation; ++data_degree) {
      if ((batch / accumulation) % data_degree != 0 || accumulation * data_degree == 1) continue;
      if (stop.stop_requested() || !CountsDiffer(sample_counts, accumulation, data_degree)) return false;
    }
  }
  return true;
}

// u of every position of the step, or nothing if this attempt is not accepted.
std::optional<std::vector<int32_t>> TryLossWeights(const StepShape& shape, int64_t attempt,
                                                   const std::stop_token& stop) {
  const std::vector<int64_t> chosen = ChoosePositions(shape, attempt);
  std::vector<int64_t> sample_counts(static_cast<size_t>(shape.batch));
  for (int64_t index : chosen) ++sample_counts[static_cast<size_t>(index / shape.positions)];
  if (!CountsDifferInEveryLayout(sample_counts, stop)) return std::nullopt;
  std::vector<int32_t> weights(static_cast<size_t>(shape.numel()));
  for (int64_t index : chosen) {
    const bool heavy = KeepBit(Draw(shape.seed, Site::kLossWeight, shape.step, attempt, index));
    weights[static_cast<size_t>(index)] = static_cast<int32_t>(shape.num_weighted * (heavy ? kHeavyWeight : 1));
  }
  return weights;
}

// None after a stop request.
std::vector<int32_t> LossWeights(const StepShape& shape, const std::stop_token& stop) {
  for (int64_t attempt = 0; attempt < kMaxAttempts; ++attempt) {
    if (stop.stop_requested()) return {};
    if (auto weights = TryLossWeights(shape, attempt, stop)) return *weights;
  }
  Fail(ErrorCode::kInvalidArgument, "train_batch_size " + std::to_string(shape.batch) + " with positions " +
                                        std::to_string(shape.positions) +
                                        ": no choice of weighted tokens differs over all layouts; allowed: a batch "
                                        "size with fewer divisors, or more positions");
}

int32_t TokenAt(const TokenSource& source, int64_t index, int64_t vocab) {
  const int32_t token = source.tokens[static_cast<size_t>(index)];
  return source.reduce_modulo_vocab ? static_cast<int32_t>(token % vocab) : token;
}

void CheckWeightedTokens(int64_t batch, int64_t positions) {
  constexpr int64_t kOddStep = 1;
  if (NumWeightedTokens(batch, positions, kOddStep) > batch) return;
  Fail(ErrorCode::kInvalidArgument, "model.positions is " + std::to_string(positions) +
                                        "; allowed: enough for more weighted tokens than samples in odd steps");
}

// Real families: u is 0 for a quarter, a half or three quarters of a sample's tokens, never for its first, and behind
// its end.
std::vector<int32_t> MaskWeights(const StepShape& shape, std::span<const int32_t> lengths) {
  constexpr uint32_t kQuarter = uint32_t{1} << 30;
  std::vector<int32_t> weights;
  for (int64_t i = 0; i < shape.numel(); ++i) {
    const auto quarters = static_cast<uint32_t>(1 + (i / shape.positions) % 3);
    const bool dropped = Draw(shape.seed, Site::kRealLossWeight, shape.step, 0, i) < kQuarter * quarters;
    const bool is_padding = !lengths.empty() && i % shape.positions >= lengths[static_cast<size_t>(i / shape.positions)];
    weights.push_back((dropped && i % shape.positions != 0) || is_padding ? 0 : 1);
  }
  return weights;
}

// Of the samples of a step.
std::vector<int32_t> Lengths(const StepShape& shape) {
  std::vector<int32_t> lengths;
  for (int64_t sample = 0; sample < shape.batch; ++sample) {
    lengths.push_back(static_cast<int32_t>(SampleLength(shape.seed, shape.positions, shape.step, sample)));
  }
  return lengths;
}

void AppendTokens(const TokenSource& source, const ModelSpec& model, const BatchRequest& request, int64_t step,
                  Batches& batches) {
  const int64_t num_starts = static_cast<int64_t>(source.tokens.size()) - model.positions();
  for (int64_t sample = 0; sample < request.batch; ++sample) {
    const int64_t start = Below(Draw(request.seed, Site::kSampleStart, step, 0, sample), num_starts);
    for (int64_t position = 0; position < model.positions(); ++position) {
      batches.tokens.push_back(TokenAt(source, start + position, model.vocab()));
      batches.labels.push_back(TokenAt(source, start + position + 1, model.vocab()));
    }
  }
}

// A normal value of mean 0 and variance 1 (Box, Muller 1958).
double Normal(uint64_t seed, int64_t tensor_id, int64_t index) {
  constexpr double kTwoPow32 = 4294967296.0;
  const double first = (Draw(seed, Site::kNormalFirst, 0, tensor_id, index) + 1.0) / kTwoPow32;
  const double second = Draw(seed, Site::kNormalSecond, 0, tensor_id, index) / kTwoPow32;
  return std::sqrt(-2 * std::log(first)) * std::cos(2 * std::numbers::pi * second);
}

// Mean and standard deviation of a parameter's initial values.
struct InitialDistribution {
  double mean = 0;
  double deviation = 0;
};

InitialDistribution DistributionOf(const RealSpec& model, const ParameterSpec& parameter) {
  constexpr double kBiasDeviation = 0.02;
  constexpr double kNormDeviation = 0.1;
  const std::string& name = parameter.name;
  const bool is_bias = name.ends_with(".bias");
  if (!is_bias && name.find("norm") != std::string::npos) return {1, kNormDeviation};
  if (is_bias) return {0, kBiasDeviation};
  const bool into_stream = name.find("attn.out.") != std::string::npos || name.find("mlp.down.") != std::string::npos;
  if (into_stream) return {0, model.initializer_range / std::sqrt(2.0 * static_cast<double>(model.layers))};
  return {0, model.initializer_range};
}

}  // namespace

TokenSource ReadTokenSource(const std::filesystem::path& path) {
  const std::string content = ReadFile(path);
  if (content.empty()) Fail(ErrorCode::kInvalidArgument, path.string() + ": is empty; allowed: a text or token file");
  const std::string name = path.filename().string();
  if (const std::optional<TensorFile> file = AsTensorFile(content, name)) return TokensOf(*file, name);
  TokenSource source;
  source.reduce_modulo_vocab = true;
  source.tokens.reserve(content.size());
  for (char c : content) source.tokens.push_back(static_cast<unsigned char>(c));
  return source;
}

std::optional<std::string> WhyNotTrainable(const TokenSource& source, const ModelSpec& model) {
  const auto length = static_cast<int64_t>(source.tokens.size());
  if (length < model.positions() + 1) {
    return "has " + std::to_string(length) + " tokens; allowed: at least " + std::to_string(model.positions() + 1) +
           ", one sample and its last label";
  }
  if (source.reduce_modulo_vocab) return std::nullopt;
  for (int64_t i = 0; i < length; ++i) {
    const int32_t token = source.tokens[static_cast<size_t>(i)];
    if (token < model.vocab()) continue;
    return "token " + std::to_string(i) + " is " + std::to_string(token) + "; allowed: 0 to " +
           std::to_string(model.vocab() - 1) + ", the vocabulary of the case";
  }
  return std::nullopt;
}

int64_t NumWeightedTokens(int64_t batch, int64_t positions, int64_t step) {
  const int64_t limit = 2 * batch * positions / 3;
  const int64_t even = limit == 0 ? 0 : static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(limit)));
  return step % 2 == 0 ? even : even / 2;
}

Batches MakeBatches(const TokenSource& source, const ModelSpec& model, const BatchRequest& request) {
  return *MakeBatches(source, model, request, std::stop_token());
}

std::optional<Batches> MakeBatches(const TokenSource& source, const ModelSpec& model, const BatchRequest& request,
                                   const std::stop_token& stop) {
  if (const auto reason = WhyNotTrainable(source, model)) {
    Fail(ErrorCode::kInvalidArgument, (source.reduce_modulo_vocab ? "text: " : "token file: ") + *reason);
  }
  const int64_t positions = model.positions();
  if (request.batch < 1) {
    Fail(ErrorCode::kInvalidArgument, "train_batch_size is " + std::to_string(request.batch) + "; allowed: at least 1");
  }
  if (model.is_exact()) CheckWeightedTokens(request.batch, positions);
  Batches batches{request.steps, request.batch, positions, {}, {}, {}, request.first_step};
  for (int64_t step = request.first_step; step < request.first_step + request.steps; ++step) {
    AppendTokens(source, model, request, step, batches);
    const StepShape shape{request.seed, step, request.batch, positions,
                          NumWeightedTokens(request.batch, positions, step)};
    const std::vector<int32_t> lengths = model.has_unequal_lengths() ? Lengths(shape) : std::vector<int32_t>();
    const std::vector<int32_t> weights = model.is_exact() ? LossWeights(shape, stop) : MaskWeights(shape, lengths);
    if (stop.stop_requested()) return std::nullopt;
    batches.lengths.insert(batches.lengths.end(), lengths.begin(), lengths.end());
    batches.loss_weights.insert(batches.loss_weights.end(), weights.begin(), weights.end());
  }
  return batches;
}

std::vector<ParameterState> MakeInitialState(const ExactSpec& model, OptimizerKind optimizer, uint64_t seed) {
  std::vector<ParameterState> state;
  for (const ParameterSpec& parameter : Parameters(model)) {
    ParameterState& entry = state.emplace_back();
    for (int64_t i = 0; i < parameter.numel(); ++i) {
      const int64_t weight =
          Below(Draw(seed, Site::kInitialWeight, 0, parameter.tensor_id, i), 2 * model.weight_bound + 1) -
          model.weight_bound;
      entry.weight.push_back(weight);
      entry.master.push_back(8 * (weight + model.weight_bound) +
                             Below(Draw(seed, Site::kInitialMaster, 0, parameter.tensor_id, i), 8));
    }
    if (optimizer == OptimizerKind::kModularMomentum) entry.moment.assign(entry.weight.size(), 0);
  }
  return state;
}

int64_t SampleLength(uint64_t seed, int64_t positions, int64_t step, int64_t sample) {
  constexpr int64_t kPeriod = 3;
  const int64_t longest = positions - positions / 4 * ((step + 1) % kPeriod);
  return 1 + Below(Draw(seed, Site::kLength, step, 0, sample), longest);
}

std::vector<RealParameterState> MakeInitialRealState(const ModelSpec& model, const RunConfig& config, uint64_t seed) {
  std::vector<RealParameterState> state;
  for (const ParameterSpec& parameter : Parameters(model)) {
    RealParameterState& entry = state.emplace_back();
    const InitialDistribution distribution = DistributionOf(model.real(), parameter);
    for (int64_t i = 0; i < parameter.numel(); ++i) {
      entry.master.push_back(
          static_cast<float>(distribution.mean + distribution.deviation * Normal(seed, parameter.tensor_id, i)));
    }
    if (parameter.frozen) continue;
    const auto numel = static_cast<size_t>(parameter.numel());
    if (HasMoment(config)) entry.moment.assign(numel, 0);
    if (HasSecondMoment(config)) entry.second_moment.assign(numel, 0);
  }
  return state;
}

}  // namespace plumbline::contract
