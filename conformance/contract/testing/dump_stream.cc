// SPDX-License-Identifier: Apache-2.0
// Prints what the contract draws for a spec, one line a thing, for independent_check.py, which prints the same from the
// document. Usage: dump_stream SOURCE SEED STEPS BATCH LAYERS WIDTH HEADS KV_HEADS POSITIONS HIDDEN VOCAB WEIGHT_BOUND
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "conformance/contract/batch_source.h"
#include "conformance/contract/digest.h"
#include "conformance/contract/error.h"
#include "conformance/contract/random_stream.h"

namespace plumbline::contract {
namespace {

void PrintDraws(uint64_t seed) {
  struct Coordinates {
    int64_t step, layer, element;
  };
  constexpr Coordinates kCoordinates[] = {
      {0, 0, 0}, {1, 0, 3}, {7, 2, 4}, {(int64_t{1} << 32) - 1, (int64_t{1} << 24) - 1, (int64_t{1} << 34) + 1}};
  for (int site = 0; site < 7; ++site) {
    for (const Coordinates& c : kCoordinates) {
      const uint32_t word = Draw(seed, static_cast<Site>(site), c.step, c.layer, c.element);
      std::printf("draw %d %lld %lld %lld %u %lld %lld %d\n", site, static_cast<long long>(c.step),
                  static_cast<long long>(c.layer), static_cast<long long>(c.element), word,
                  static_cast<long long>(Below(word, 1)), static_cast<long long>(Below(word, 19)),
                  KeepBit(word) ? 1 : 0);
    }
  }
}

template <typename T>
void PrintValues(const std::string& title, const T* values, int64_t count) {
  std::printf("%s", title.c_str());
  for (int64_t i = 0; i < count; ++i) std::printf(" %lld", static_cast<long long>(values[i]));
  std::printf("\n");
}

void PrintBatches(const Batches& batches) {
  const int64_t count = batches.batch * batches.positions;
  for (int64_t step = 0; step < batches.steps; ++step) {
    const int64_t begin = batches.Index(step, 0, 0);
    const std::string suffix = " " + std::to_string(step);
    PrintValues("tokens" + suffix, batches.tokens.data() + begin, count);
    PrintValues("labels" + suffix, batches.labels.data() + begin, count);
    PrintValues("loss_weights" + suffix, batches.loss_weights.data() + begin, count);
  }
}

void PrintDigest(const std::string& title, const std::vector<int64_t>& values) {
  Digest digest;
  for (size_t i = 0; i < values.size(); ++i) digest.Add(static_cast<int64_t>(i), values[i]);
  std::printf("digest %s %llu %lld %lld %llu\n", title.c_str(), static_cast<unsigned long long>(digest.hash),
              static_cast<long long>(digest.sum), static_cast<long long>(digest.sum_squares),
              static_cast<unsigned long long>(digest.sum_indexed));
}

void PrintState(const ExactSpec& model, uint64_t seed) {
  const std::vector<ParameterSpec> parameters = Parameters(model);
  const std::vector<ParameterState> state = MakeInitialState(model, OptimizerKind::kModularMomentum, seed);
  for (size_t p = 0; p < parameters.size(); ++p) {
    const std::string& name = parameters[p].name;
    const std::string suffix =
        " " + name + " " + std::to_string(parameters[p].rows) + " " + std::to_string(parameters[p].cols);
    PrintValues("weight" + suffix, state[p].weight.data(), std::ssize(state[p].weight));
    PrintValues("master" + suffix, state[p].master.data(), std::ssize(state[p].master));
    PrintValues("moment" + suffix, state[p].moment.data(), std::ssize(state[p].moment));
    std::vector<int64_t> shifted = state[p].master;
    for (size_t i = 0; i < shifted.size(); ++i) shifted[i] -= 1'000'003 * static_cast<int64_t>(i % 5);
    PrintDigest("weight " + name, state[p].weight);
    PrintDigest("shifted " + name, shifted);
  }
}

int Main(int argc, char** argv) {
  if (argc != 13) {
    std::fprintf(stderr, "usage: dump_stream SOURCE SEED STEPS BATCH and eight sizes of the model\n");
    return static_cast<int>(ExitCode::kUsage);
  }
  const auto number = [&](int index) { return std::strtoll(argv[index], nullptr, 10); };
  const uint64_t seed = std::strtoull(argv[2], nullptr, 10);
  const ExactSpec model = {.layers = number(5),
                           .width = number(6),
                           .heads = number(7),
                           .kv_heads = number(8),
                           .positions = number(9),
                           .hidden = number(10),
                           .vocab = number(11),
                           .weight_bound = number(12)};
  PrintDraws(seed);
  PrintBatches(MakeBatches(ReadTokenSource(argv[1]), model, {seed, 0, number(3), number(4)}));
  PrintState(model, seed);
  return 0;
}

}  // namespace
}  // namespace plumbline::contract

int main(int argc, char** argv) {
  try {
    return plumbline::contract::Main(argc, argv);
  } catch (const plumbline::contract::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(plumbline::contract::ExitCodeOf(error.code()));
  }
}
