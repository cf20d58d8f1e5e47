// SPDX-License-Identifier: Apache-2.0
// The contract's side of contract_test.py: writes random words and masks, case folders and tensor files as the harness
// has them, and reads what the kit wrote. It judges nothing but traces, by the harness's own reader.
//
//   contract_bytes words FILE                  words and masks of chosen coordinates; names are the coordinates
//   contract_bytes case CASE_JSON TEXT DIR     the folder of a case
//   contract_bytes copy FILE COPY              reads a tensor file and writes it again
//   contract_bytes trace CASE_DIR OUT_DIR      one line: "ok N", N digests and scalars of all ranks, or what is wrong
//   contract_bytes digests FILE exact|real     of each tensor of a dump: its name and its digest as a trace has it
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "conformance/contract/batch_source.h"
#include "conformance/contract/case_file.h"
#include "conformance/contract/digest.h"
#include "conformance/contract/error.h"
#include "conformance/contract/file_io.h"
#include "conformance/contract/random_stream.h"
#include "conformance/contract/tensor_file.h"
#include "conformance/contract/trace.h"
#include "conformance/oracle/run_digest.h"
#include "conformance/oracle/step_sight.h"

namespace plumbline::conformance {
namespace {

struct Coordinates {
  uint64_t seed;
  int64_t site, step, layer, first_element;
};
// Both halves of the seed, the largest step and layer, and elements on both sides of 2^34, where the counter carries.
constexpr Coordinates kCoordinates[] = {{1, 5, 0, 0, 0},
                                        {(uint64_t{1} << 40) + 9, 6, 7, 2, 3},
                                        {~uint64_t{0}, 17, (int64_t{1} << 32) - 1, (int64_t{1} << 24) - 1, 1},
                                        {0x9E3779B97F4A7C15, 19, 12, 1, (int64_t{1} << 34) - 5},
                                        {0, 23, 1, 0, 0}};
constexpr int64_t kNumWords = 37;
constexpr double kRates[] = {0.5, 0.1, 0.3, 0.9};

// Family exact has a rule of its own for its only rate.
bool IsKept(uint32_t word, double rate) {
  return rate == 0.5 ? contract::KeepBit(word) : word >= contract::DropThreshold(rate);
}

std::string NameOf(const char* what, const Coordinates& c) {
  return std::string(what) + "/" + std::to_string(c.seed) + "/" + std::to_string(c.site) + "/" +
         std::to_string(c.step) + "/" + std::to_string(c.layer) + "/" + std::to_string(c.first_element);
}

void WriteWords(const std::filesystem::path& path) {
  contract::TensorFile file;
  for (const Coordinates& c : kCoordinates) {
    std::vector<int64_t> words;
    std::array<std::vector<int32_t>, std::size(kRates)> masks;
    for (int64_t i = 0; i < kNumWords; ++i) {
      const auto site = static_cast<contract::Site>(c.site);
      const uint32_t word = contract::Draw(c.seed, site, c.step, c.layer, c.first_element + i);
      words.push_back(word);
      for (size_t rate = 0; rate < std::size(kRates); ++rate) masks[rate].push_back(IsKept(word, kRates[rate]) ? 1 : 0);
    }
    file.tensors.push_back(contract::MakeI64(NameOf("words", c), {kNumWords}, words));
    for (size_t rate = 0; rate < std::size(kRates); ++rate) {
      const std::string name = "keep" + std::to_string(static_cast<int>(kRates[rate] * 10));
      file.tensors.push_back(contract::MakeI32(NameOf(name.c_str(), c), {kNumWords}, masks[rate]));
    }
  }
  contract::WriteTensorFile(path, file);
}

void WriteCaseFolder(const std::filesystem::path& json, const std::filesystem::path& text,
                     const std::filesystem::path& dir) {
  contract::CaseData data;
  data.spec = contract::ParseCase(contract::ReadFile(json), json.filename().string());
  const contract::Case& spec = data.spec;
  data.parameters = contract::Parameters(spec.model);
  if (spec.model.is_exact()) {
    data.state = contract::MakeInitialState(spec.model.exact(), spec.config.optimizer, spec.seed);
  } else {
    data.real_state = contract::MakeInitialRealState(spec.model, spec.config, spec.seed);
  }
  data.batches = contract::MakeBatches(
      contract::ReadTokenSource(text), spec.model,
      {.seed = spec.seed, .first_step = spec.first_step, .steps = spec.steps, .batch = spec.config.train_batch_size});
  std::filesystem::create_directories(dir);
  contract::WriteCase(dir, data);
}

int64_t CountOf(const RunDigest& run) {
  int64_t count = 0;
  for (const StepDigest& step : run.steps) {
    count += 2;
    for (const auto& digests : step.tensors) count += static_cast<int64_t>(digests.size());
  }
  return count;
}

std::string JudgeTrace(const std::filesystem::path& case_dir, const std::filesystem::path& out_dir) {
  const contract::Case spec = contract::ReadCase(case_dir).spec;
  std::vector<contract::Trace> ranks;
  for (int64_t rank = 0; rank < spec.config.data_degree; ++rank) ranks.push_back(contract::ReadTrace(out_dir, rank));
  const MergedRun merged = MergeTraces(spec, ranks);
  for (const reports::CheckRecord& check : merged.checks) {
    if (check.outcome == reports::CheckOutcome::kFail) return check.name + ": " + check.detail;
  }
  for (const int64_t step : spec.model.is_exact() ? std::vector<int64_t>{} : spec.dump_steps) {
    const SightResult seen = SeeStep(spec, out_dir, step);
    if (!seen.sight) return seen.check.name + ": " + seen.check.detail;
  }
  return "ok " + std::to_string(CountOf(merged.run));
}

uint64_t BitsOf(const contract::HostTensor& tensor, int64_t index) {
  const int64_t size = contract::SizeBytes(tensor.dtype);
  uint64_t bits = 0;
  std::memcpy(&bits, tensor.data.data() + index * size, static_cast<size_t>(size));
  return bits;
}

void PrintDigests(const std::filesystem::path& path, bool exact) {
  for (const contract::HostTensor& tensor : contract::ReadTensorFile(path).tensors) {
    const int64_t begin = std::stoll(tensor.name.substr(tensor.name.find('@') + 1));
    contract::Digest digest;
    const std::vector<int64_t> values = exact ? contract::ToInt64(tensor) : std::vector<int64_t>{};
    for (int64_t i = 0; i < tensor.numel(); ++i) {
      if (exact) {
        digest.Add(begin + i, values[static_cast<size_t>(i)]);
      } else {
        digest.AddBits(begin + i, BitsOf(tensor, i));
      }
    }
    std::printf("%s %016llx %lld %lld %llu\n", tensor.name.c_str(), static_cast<unsigned long long>(digest.hash),
                static_cast<long long>(digest.sum), static_cast<long long>(digest.sum_squares),
                static_cast<unsigned long long>(digest.sum_indexed));
  }
}

bool Run(const std::vector<std::string>& words) {
  const std::string command = words.empty() ? "" : words[0];
  if (command == "words" && words.size() == 2) {
    WriteWords(words[1]);
  } else if (command == "case" && words.size() == 4) {
    WriteCaseFolder(words[1], words[2], words[3]);
  } else if (command == "copy" && words.size() == 3) {
    contract::WriteTensorFile(words[2], contract::ReadTensorFile(words[1]));
  } else if (command == "trace" && words.size() == 3) {
    std::printf("%s\n", JudgeTrace(words[1], words[2]).c_str());
  } else if (command == "digests" && words.size() == 3) {
    PrintDigests(words[1], words[2] == "exact");
  } else {
    return false;
  }
  return true;
}

}  // namespace
}  // namespace plumbline::conformance

int main(int argc, char** argv) {
  try {
    if (plumbline::conformance::Run({argv + 1, argv + argc})) return 0;
    std::fprintf(stderr, "usage: contract_bytes words | case | copy | trace | digests ...\n");
    return static_cast<int>(plumbline::contract::ExitCode::kUsage);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "contract_bytes: %s\n", error.what());
    return static_cast<int>(plumbline::contract::ExitCode::kFailure);
  }
}
