// SPDX-License-Identifier: Apache-2.0
#include "conformance/diagnosis/dump.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "conformance/contract/digest.h"
#include "conformance/contract/model_spec.h"
#include "conformance/contract/tensor_file.h"
#include "conformance/oracle/stored_value.h"

namespace plumbline::conformance {
namespace {

using contract::TensorKind;

Values ValuesOf(const contract::HostTensor& tensor) {
  Values values(static_cast<size_t>(tensor.numel()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = StoredValue(tensor, static_cast<int64_t>(i));
  return values;
}

// Of integers in family exact, else of bits. What is no integer is in no digest of family exact.
uint64_t HashOf(const contract::HostTensor& tensor, const Values& values, int64_t begin, bool is_exact) {
  contract::Digest digest;
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t index = begin + static_cast<int64_t>(i);
    if (is_exact && std::abs(values[i]) < 0x1p63) {
      digest.Add(index, static_cast<int64_t>(values[i]));
    } else {
      digest.AddBits(index, StoredBits(tensor, static_cast<int64_t>(i)));
    }
  }
  return digest.hash;
}

std::optional<TensorKind> KindOf(std::string_view name) {
  for (TensorKind kind : contract::kTensorKinds) {
    if (name == contract::Name(kind)) return kind;
  }
  return std::nullopt;
}

// The place of a tensor among the canonical ones, and its size.
struct Place {
  size_t index = 0;
  int64_t numel = 0;
};

// Puts "KIND/NAME@BEGIN" where it belongs. What begins outside of the tensor is nowhere.
void Take(const contract::HostTensor& tensor, int64_t rank, const std::map<std::string, Place, std::less<>>& place_of,
          bool is_exact, Dump& dump) {
  const std::string_view text = tensor.name;
  const size_t slash = text.find('/');
  const size_t at = text.rfind('@');
  if (slash == std::string_view::npos || at == std::string_view::npos || at < slash) return;
  const std::optional<TensorKind> kind = KindOf(text.substr(0, slash));
  const auto found = place_of.find(text.substr(slash + 1, at - slash - 1));
  int64_t begin = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + at + 1, end, begin);
  if (!kind || found == place_of.end() || parsed.ec != std::errc() || parsed.ptr != end) return;
  const auto [index, numel] = found->second;
  if (begin < 0 || begin > numel) return;
  Values values = ValuesOf(tensor);
  const uint64_t hash = HashOf(tensor, values, begin, is_exact);
  dump.slices[static_cast<int>(*kind)][index].push_back({rank, begin, std::move(values), hash});
}

double Distance(const DumpedSlice& slice, const Values& truth) {
  double squares = 0;
  for (size_t i = 0; i < slice.values.size(); ++i) {
    const size_t at = static_cast<size_t>(slice.begin) + i;
    if (at >= truth.size()) return 0;
    squares += (slice.values[i] - truth[at]) * (slice.values[i] - truth[at]);
  }
  return std::isnan(squares) ? HUGE_VAL : squares;
}

bool Same(const Values& a, const Values& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](double x, double y) {
           return x == y || (std::isnan(x) && std::isnan(y));
         });
}

bool Disagrees(const std::vector<DumpedSlice>& slices) {
  for (size_t i = 1; i < slices.size(); ++i) {
    if (slices[i].begin == slices[i - 1].begin && !Same(slices[i].values, slices[i - 1].values)) return true;
  }
  return false;
}

}  // namespace

Dump ReadDump(const contract::Case& spec, const std::filesystem::path& out_dir, int64_t step) {
  const std::vector<contract::ParameterSpec> parameters = contract::Parameters(spec.model);
  std::map<std::string, Place, std::less<>> place_of;
  for (size_t i = 0; i < parameters.size(); ++i) place_of[parameters[i].name] = {i, parameters[i].numel()};
  Dump dump;
  for (auto& kind : dump.slices) kind.resize(parameters.size());
  for (int64_t rank = 0; rank < spec.config.world_size(); ++rank) {
    const contract::TensorFile file = contract::ReadTensorFile(out_dir, contract::DumpName(rank, step));
    for (const contract::HostTensor& tensor : file.tensors) Take(tensor, rank, place_of, spec.model.is_exact(), dump);
    for (contract::StepRecord& record : contract::ReadTrace(out_dir, rank).steps) {
      if (record.step == step) dump.records.push_back(std::move(record));
    }
  }
  for (auto& kind : dump.slices) {
    for (auto& slices : kind) {
      std::stable_sort(slices.begin(), slices.end(), [](const DumpedSlice& a, const DumpedSlice& b) {
        return std::tuple(a.begin, a.rank) < std::tuple(b.begin, b.rank);
      });
    }
  }
  return dump;
}

std::optional<HeldTensor> Assemble(const std::vector<DumpedSlice>& slices, int64_t numel, const Values& truth) {
  HeldTensor whole;
  size_t next = 0;
  while (next < slices.size()) {
    const auto covered = static_cast<int64_t>(whole.values.size());
    const DumpedSlice* farthest = &slices[next];
    for (; next < slices.size() && slices[next].begin == farthest->begin; ++next) {
      if (slices[next].values.size() != farthest->values.size()) return std::nullopt;
      if (Distance(slices[next], truth) > Distance(*farthest, truth)) farthest = &slices[next];
    }
    if (farthest->begin != covered) return std::nullopt;
    whole.values.insert(whole.values.end(), farthest->values.begin(), farthest->values.end());
    whole.held.push_back({farthest->rank, covered, static_cast<int64_t>(whole.values.size())});
  }
  if (static_cast<int64_t>(whole.values.size()) != numel) return std::nullopt;
  return whole;
}

Values WholeTensor(const std::vector<DumpedSlice>& slices, int64_t numel) {
  std::optional<HeldTensor> held = Assemble(slices, numel, {});
  return held ? std::move(held->values) : Values{};
}

std::optional<Disagreement> FirstDisagreement(const Dump& dump) {
  for (TensorKind kind : contract::kTensorKinds) {
    const auto& tensors = dump.slices[static_cast<int>(kind)];
    for (size_t i = 0; i < tensors.size(); ++i) {
      const size_t tensor = kind == TensorKind::kGradient ? tensors.size() - 1 - i : i;
      if (Disagrees(tensors[tensor])) return Disagreement{kind, tensor};
    }
  }
  return std::nullopt;
}

std::vector<int64_t> DifferingRanks(const std::vector<DumpedSlice>& slices, const Values& truth, double tolerance) {
  std::set<int64_t> ranks;
  for (const DumpedSlice& slice : slices) {
    for (size_t i = 0; i < slice.values.size(); ++i) {
      const size_t at = static_cast<size_t>(slice.begin) + i;
      if (at < truth.size() && std::abs(slice.values[i] - truth[at]) <= tolerance) continue;
      ranks.insert(slice.rank);
      break;
    }
  }
  return {ranks.begin(), ranks.end()};
}

std::vector<int64_t> RanksOfOtherTrace(const Dump& dump, TensorKind kind, size_t tensor, const std::string& name) {
  std::vector<int64_t> ranks;
  for (size_t rank = 0; rank < dump.records.size(); ++rank) {
    uint64_t stated = 0;
    uint64_t dumped = 0;  // hashes are sums over elements
    for (const contract::SliceDigest& slice : dump.records[rank].of(kind)) {
      if (slice.tensor == name) stated += slice.digest.hash;
    }
    for (const DumpedSlice& slice : dump.of(kind, tensor)) {
      if (slice.rank == static_cast<int64_t>(rank)) dumped += slice.hash;
    }
    if (stated != dumped) ranks.push_back(static_cast<int64_t>(rank));
  }
  return ranks;
}

double GradientNorm(const Dump& dump, const std::function<bool(size_t tensor)>& counts) {
  double squares = 0;
  const auto& gradients = dump.slices[static_cast<int>(TensorKind::kGradient)];
  for (size_t tensor = 0; tensor < gradients.size(); ++tensor) {
    int64_t covered = 0;
    for (const DumpedSlice& slice : gradients[tensor]) {
      if (slice.begin < covered || (counts && !counts(tensor))) continue;
      for (double value : slice.values) squares += value * value;
      covered = slice.begin + static_cast<int64_t>(slice.values.size());
    }
  }
  return std::sqrt(squares);
}

std::vector<double> RankGradientNorms(const Dump& dump, int64_t num_ranks) {
  std::vector<double> norms(static_cast<size_t>(num_ranks));
  for (const auto& slices : dump.slices[static_cast<int>(TensorKind::kGradient)]) {
    for (const DumpedSlice& slice : slices) {
      for (double value : slice.values) norms[static_cast<size_t>(slice.rank)] += value * value;
    }
  }
  for (double& norm : norms) norm = std::sqrt(norm);
  return norms;
}

}  // namespace plumbline::conformance
