// SPDX-License-Identifier: Apache-2.0
// Peaks of memory, calls and bytes of a step by the text of docs/zero3.md and docs/formats.md, written again from the
// config alone. Prefetch is left out.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "conformance/contract/case_file.h"
#include "conformance/contract/trace.h"
#include "optimized/engine/testing/real_case.h"

namespace plumbline::optimized::testing {

using contract::CaseData;
using contract::CommCount;
using Peaks = std::map<std::string, int64_t>;  // by category

inline int64_t RoundUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

// Padded elements of the buckets of one set of parameters.
inline std::vector<int64_t> PaddedBuckets(const CaseData& data, const std::set<int64_t>& parameters) {
  std::vector<int64_t> padded;
  int64_t own_elems = 0, end = 0;
  bool is_open = false;
  const auto close = [&] {
    if (is_open) padded.push_back(RoundUp(end, 32 * data.spec.config.data_degree));
    own_elems = end = 0;
  };
  for (auto p = parameters.rbegin(); p != parameters.rend(); ++p) {
    const int64_t numel = data.parameters[*p].numel();
    if (is_open && own_elems + numel > data.spec.config.reduce_bucket_elems) close();
    is_open = true;
    own_elems += numel;
    end = RoundUp(end, 32) + numel;
  }
  close();
  return padded;
}

inline int64_t Sum(const std::vector<int64_t>& values) {
  int64_t sum = 0;
  for (const int64_t value : values) sum += value;
  return sum;
}

// Activations of family gpt2, line by line of docs/zero3.md.
inline int64_t Gpt2ActivationBytes(const CaseData& data) {
  const contract::Gpt2Spec& m = data.spec.model.gpt2();
  const int64_t s = contract::SizeBytes(data.spec.config.storage);
  const int64_t n = data.spec.config.micro_batch_size * m.positions;
  const int64_t d = m.width, f = m.hidden, v = m.vocab, scores = m.heads * m.positions;
  const bool dropout = m.dropout > 0;
  const int64_t scratch = s * n * (9 * d + f + scores) + 4 * n * (scores + std::max(3 * d, f));
  const int64_t streams = s * n * d * (2 * m.layers + 2);
  const int64_t head = 2 * s * n * d + 8 * n + 4 * n * v + (s == 2 ? 2 * n * v : 0);
  const int64_t attention = s * n * (5 * d + scores) + 8 * n + (dropout ? s * n * scores : 0);
  const int64_t mlp = s * n * (d + 2 * f) + 8 * n;
  const int64_t masks = dropout ? n * d + m.layers * n * (scores + 2 * d) : 0;
  return scratch + streams + head + m.layers * (attention + mlp) + masks;
}

// Activations of family llama, line by line of docs/zero3.md.
inline int64_t LlamaActivationBytes(const CaseData& data) {
  const contract::LlamaSpec& m = data.spec.model.llama();
  const int64_t s = contract::SizeBytes(data.spec.config.storage);
  const int64_t n = data.spec.config.micro_batch_size * m.positions;
  const int64_t d = m.width, e = m.kv_heads * m.width / m.heads, f = m.hidden, v = m.vocab;
  const int64_t scores = m.heads * m.positions;
  const bool dropout = m.dropout > 0;
  const int64_t scratch = s * n * (3 * d + 2 * e + 2 * f + scores) + 4 * n * (d + scores);
  const int64_t angles = 4 * m.positions * d / m.heads;
  const int64_t streams = s * n * d * (2 * m.layers + 2);
  const int64_t head = 2 * s * n * d + 4 * n + 4 * n * v + (s == 2 ? 2 * n * v : 0);
  const int64_t attention = s * n * (3 * d + 2 * e + scores) + 4 * n + (dropout ? s * n * scores : 0);
  const int64_t mlp = s * n * (d + 3 * f) + 4 * n;
  const int64_t masks = dropout ? n * d + m.layers * n * (scores + 2 * d) : 0;
  return scratch + angles + streams + head + m.layers * (attention + mlp) + masks;
}

// Activations of family exact, element by element of docs/zero3.md.
inline int64_t ExactActivationBytes(const CaseData& data) {
  const contract::ExactSpec& m = data.spec.model.exact();
  const int64_t s = contract::SizeBytes(data.spec.config.storage);
  const int64_t n = data.spec.config.micro_batch_size * m.positions;
  const int64_t d = m.width, e = m.kv_width(), f = m.hidden, v = m.vocab, scores = m.heads * m.positions;
  const int64_t scratch = s * n * (4 * d + scores + f) + 4 * n * d;
  const int64_t head = s * n * (d + 2 * v);
  const int64_t stream = s * n * d * (2 * m.layers + 2);
  const int64_t attention = s * n * (2 * d + 4 * e + 4 * d + 2 * scores);
  const int64_t mlp = s * n * (2 * d + 2 * f);
  const int64_t masks = m.dropout ? 2 * n * d : 0;
  return scratch + head + stream + m.layers * (attention + mlp + masks);
}

inline int64_t ActivationBytes(const CaseData& data) {
  switch (data.spec.model.kind()) {
    case contract::Family::kExact:
      return ExactActivationBytes(data);
    case contract::Family::kGpt2:
      return Gpt2ActivationBytes(data);
    case contract::Family::kLlama:
      return LlamaActivationBytes(data);
  }
  return -1;
}

// The groups of a layout: sets of parameters, and for each the uses of a step in which it is needed.
struct Groups {
  std::set<int64_t> persistent;
  std::vector<std::set<int64_t>> members;
  std::vector<std::set<int64_t>> uses;
  int64_t num_uses = 0;
};

inline int64_t NumLayers(const CaseData& data) {
  return data.spec.model.is_exact() ? data.spec.model.exact().layers : data.spec.model.real().layers;
}

// What each unit reads. The last may be one that is never used.
inline std::vector<std::set<int64_t>> UnitsOf(const CaseData& data) {
  const contract::ModelSpec& model = data.spec.model;
  const bool is_llama = model.kind() == contract::Family::kLlama;
  const int64_t per_layer = model.is_exact() ? 6 : is_llama ? 9 : 12;
  std::vector<std::set<int64_t>> units = {is_llama ? std::set<int64_t>{0} : std::set<int64_t>{0, 1}};
  int64_t next = is_llama ? 1 : 2;
  for (int64_t layer = 0; layer < NumLayers(data); ++layer) {
    units.emplace_back();
    for (int64_t i = 0; i < per_layer; ++i) units.back().insert(next++);
  }
  if (model.is_exact()) {
    units.push_back({0});
    return units;
  }
  if (is_llama) {
    units.push_back({next, next + 1});
  } else {
    units.push_back({next, next + 1, model.has_tied_head() ? 0 : next + 2});
  }
  if (model.real().unused) units.push_back({static_cast<int64_t>(data.parameters.size()) - 1});
  return units;
}

// By its name; a frozen parameter has none that matters.
inline int64_t StageOfParameter(const CaseData& data, const contract::ParameterSpec& p) {
  const contract::RunConfig& config = data.spec.config;
  const std::string prefix = "layers.";
  if (config.layer_stages.empty() || !p.name.starts_with(prefix)) return config.zero_stage;
  return config.layer_stages.at(std::stoul(p.name.substr(prefix.size())));
}

// Trained ones.
inline std::set<int64_t> ParametersOfStage(const CaseData& data, int64_t stage) {
  std::set<int64_t> parameters;
  for (const contract::ParameterSpec& p : data.parameters) {
    if (!p.frozen && StageOfParameter(data, p) == stage) parameters.insert(p.tensor_id);
  }
  return parameters;
}

inline bool AnyTrainedIsSharded(const CaseData& data) {
  return !ParametersOfStage(data, 1).empty() || !ParametersOfStage(data, 2).empty() ||
         !ParametersOfStage(data, 3).empty();
}

// Of what is trained and of stage 3.
inline Groups GroupsOf(const CaseData& data) {
  const std::vector<std::set<int64_t>> units = UnitsOf(data);
  const int64_t layers = NumLayers(data);
  Groups groups;
  std::map<std::set<int64_t>, std::set<int64_t>> members_by_units;
  for (const contract::ParameterSpec& p : data.parameters) {
    if (p.frozen || StageOfParameter(data, p) != 3) continue;
    if (p.numel() < data.spec.config.persistence_threshold_elems) {
      groups.persistent.insert(p.tensor_id);
      continue;
    }
    std::set<int64_t> readers;
    for (size_t unit = 0; unit < units.size(); ++unit) {
      if (units[unit].contains(p.tensor_id)) readers.insert(static_cast<int64_t>(unit));
    }
    members_by_units[readers].insert(p.tensor_id);
  }
  for (const auto& [readers, members] : members_by_units) groups.members.push_back(members);
  groups.uses.resize(groups.members.size());
  for (int64_t a = 0; a < data.spec.config.accumulation_steps; ++a) {
    std::vector<int64_t> order;
    for (int64_t unit = 0; unit <= layers + 1; ++unit) order.push_back(unit);
    for (int64_t unit = layers + 1; unit >= 1; --unit) order.push_back(unit);
    for (const int64_t unit : order) {
      for (size_t g = 0; g < groups.members.size(); ++g) {
        if (units[unit].contains(*groups.members[g].begin())) groups.uses[g].insert(groups.num_uses);
      }
      ++groups.num_uses;
    }
  }
  return groups;
}

inline int64_t OwnElems(const CaseData& data, const std::set<int64_t>& group) {
  int64_t elems = 0;
  for (const int64_t p : group) elems += data.parameters[p].numel();
  return elems;
}

// Without prefetch. Number of gathers of each group, and the largest number of bytes gathered at once.
inline std::pair<std::vector<int64_t>, int64_t> GathersAndPeak(const CaseData& data, const Groups& groups) {
  const size_t num_groups = groups.members.size();
  std::vector<std::vector<bool>> live(num_groups, std::vector<bool>(groups.num_uses, false));
  const auto live_elems = [&](int64_t use) {
    int64_t elems = 0;
    for (size_t g = 0; g < num_groups; ++g) elems += live[g][use] ? OwnElems(data, groups.members[g]) : 0;
    return elems;
  };
  std::vector<int64_t> gathers(num_groups);
  // (length, begin, largest first as the engine numbers groups)
  std::set<std::tuple<int64_t, int64_t, int64_t>> waits;
  for (size_t g = 0; g < num_groups; ++g) {
    int64_t previous = -1;
    for (const int64_t use : groups.uses[g]) {
      live[g][use] = true;
      ++gathers[g];
      if (previous >= 0) waits.insert({use - previous, previous, -*groups.members[g].rbegin()});
      previous = use;
    }
  }
  for (const auto& [length, begin, key] : waits) {
    for (size_t g = 0; g < num_groups; ++g) {
      if (-*groups.members[g].rbegin() != key) continue;
      bool fits = true;
      for (int64_t use = begin + 1; use < begin + length; ++use) {
        fits &= live_elems(use) + OwnElems(data, groups.members[g]) <= data.spec.config.max_live_elems;
      }
      if (!fits) continue;
      --gathers[g];
      for (int64_t use = begin + 1; use < begin + length; ++use) live[g][use] = true;
    }
  }
  int64_t peak_elems = 0;
  for (int64_t use = 0; use < groups.num_uses; ++use) {
    int64_t elems = 0;
    for (size_t g = 0; g < num_groups; ++g) {
      elems += live[g][use] ? Sum(PaddedBuckets(data, groups.members[g])) : 0;
    }
    peak_elems = std::max(peak_elems, elems);
  }
  return {gathers, peak_elems * contract::SizeBytes(data.spec.config.storage)};
}

inline std::set<int64_t> Trained(const CaseData& data) {
  std::set<int64_t> trained;
  for (const contract::ParameterSpec& p : data.parameters) {
    if (!p.frozen) trained.insert(p.tensor_id);
  }
  return trained;
}

// Each frozen parameter in multiples of 32.
inline int64_t FrozenElems(const CaseData& data) {
  int64_t elems = 0;
  for (const contract::ParameterSpec& p : data.parameters) elems += p.frozen ? RoundUp(p.numel(), 32) : 0;
  return elems;
}

inline int64_t NumMoments(const contract::RunConfig& config) {
  switch (config.optimizer) {
    case contract::OptimizerKind::kAdamW:
    case contract::OptimizerKind::kAdam:
    case contract::OptimizerKind::kLamb:
      return 2;
    case contract::OptimizerKind::kLion:
    case contract::OptimizerKind::kModularMomentum:
      return 1;
    case contract::OptimizerKind::kModularSgd:
      return 0;
    case contract::OptimizerKind::kSgd:
      return config.params.momentum > 0 ? 1 : 0;
  }
  return -1;
}

inline Peaks ExpectedPeaks(const CaseData& data) {
  const contract::RunConfig& config = data.spec.config;
  const int64_t s = contract::SizeBytes(config.storage), r = config.data_degree;
  const Groups groups = GroupsOf(data);
  int64_t in_groups = 0;
  for (const auto& members : groups.members) in_groups += Sum(PaddedBuckets(data, members));
  const int64_t stage0 = Sum(PaddedBuckets(data, ParametersOfStage(data, 0)));
  const int64_t stage1 = Sum(PaddedBuckets(data, ParametersOfStage(data, 1)));
  const int64_t stage2 = Sum(PaddedBuckets(data, ParametersOfStage(data, 2)));
  const int64_t stage3 = in_groups + Sum(PaddedBuckets(data, groups.persistent));
  const int64_t total = stage0 + stage1 + stage2 + stage3, parts = (stage1 + stage2 + stage3) / r;
  return {{"weights", s * (total - in_groups + in_groups / r + FrozenElems(data))},
          {"gathered_weights", GathersAndPeak(data, groups).second},
          {"gradients", 4 * total + 4 * parts},
          {"optimizer_state", 4 * (1 + NumMoments(config)) * (stage0 + parts)},
          {"activations", ActivationBytes(data)},
          {"communication", config.accumulation_steps > 1 ? 4 * (stage2 + stage3) / r : 0}};
}

// Rows of embeddings, of the head and of `unused`, columns of other matrices, vectors; not of the second group, which
// these cases exempt.
inline int64_t NumUnits(const CaseData& data) {
  int64_t units = 0;
  for (const contract::ParameterSpec& p : data.parameters) {
    if (p.frozen || IsInSecondGroup(data, p)) continue;
    const bool is_by_rows =
        p.name == "embed.weight" || p.name == "pos.weight" || p.name == "head.weight" || p.name == "unused.weight";
    units += p.is_vector ? 1 : is_by_rows ? p.rows : p.cols;
  }
  return units;
}

// The all_reduces of norm, units and LAMB, in this order.
inline std::vector<int64_t> BytesOfSums(const CaseData& data) {
  const contract::RunConfig& config = data.spec.config;
  std::vector<int64_t> bytes;
  if (!AnyTrainedIsSharded(data) || data.spec.model.is_exact()) return bytes;
  bytes.push_back(168);
  if (config.adaptive_clipping.kind == contract::AdaptiveClipping::Kind::kUnit) bytes.push_back(336 * NumUnits(data));
  if (config.optimizer == contract::OptimizerKind::kLamb) {
    bytes.push_back(336 * static_cast<int64_t>(Trained(data).size()));
  }
  return bytes;
}

// Of a step, by the tables of docs/formats.md and docs/zero3.md.
inline std::map<std::string, CommCount> ExpectedComm(const CaseData& data) {
  const contract::RunConfig& config = data.spec.config;
  std::map<std::string, CommCount> expected;
  if (config.data_degree == 1) return expected;
  const auto add = [&](const char* kind, int64_t times, int64_t bytes) {
    if (times == 0) return;
    expected[kind].calls += times;
    expected[kind].bytes += times * bytes;
  };
  add("all_reduce", 2, 8);
  for (const int64_t bytes : BytesOfSums(data)) add("all_reduce", 1, bytes);
  const auto add_set = [&](const std::set<int64_t>& parameters, int64_t stage, int64_t gathers) {
    for (const int64_t elems : PaddedBuckets(data, parameters)) {
      if (stage == 0) {
        add("all_reduce", 1, 4 * elems);
      } else {
        add("reduce_scatter", stage == 1 ? 1 : config.accumulation_steps, 4 * elems);
        add("all_gather", gathers, contract::SizeBytes(config.storage) * elems);
      }
    }
  };
  const Groups groups = GroupsOf(data);
  const std::vector<int64_t> gathers = GathersAndPeak(data, groups).first;
  for (size_t g = 0; g < groups.members.size(); ++g) add_set(groups.members[g], 3, gathers[g]);
  add_set(groups.persistent, 3, 1);
  for (const int64_t stage : {2, 1, 0}) add_set(ParametersOfStage(data, stage), stage, 1);
  return expected;
}

}  // namespace plumbline::optimized::testing
