// SPDX-License-Identifier: Apache-2.0
// Checks that records belong together, then joins them.
#include "reports/record/merge.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace plumbline::reports {
namespace {

using Shards = std::vector<const Record*>;

std::string ShardName(const Record& record) {
  return "shard " + std::to_string(record.shard.index) + "/" + std::to_string(record.shard.count);
}

[[noreturn]] void RefusePair(const Record& a, const Record& b, const std::string& why) {
  throw RecordError(ShardName(a) + " and " + ShardName(b) + " do not belong together: " + why);
}

void DemandSame(const Record& a, const Record& b, const std::string& what, const std::string& of_a,
                const std::string& of_b) {
  if (of_a != of_b) RefusePair(a, b, what + " is \"" + of_a + "\" in one and \"" + of_b + "\" in the other");
}

std::string ValueOr(const std::map<std::string, std::string>& map, const std::string& key, const std::string& absent) {
  const auto found = map.find(key);
  return found == map.end() ? absent : found->second;
}

void DemandSameOptions(const Record& a, const Record& b, const std::set<std::string>& free_options) {
  std::set<std::string> names;
  for (const Record* record : {&a, &b}) {
    for (const auto& [name, value] : record->options) names.insert(name);
  }
  for (const std::string& name : names) {
    if (free_options.count(name) > 0) continue;
    DemandSame(a, b, "option " + name, ValueOr(a.options, name, "(absent)"), ValueOr(b.options, name, "(absent)"));
  }
}

void DemandSameRun(const Record& a, const Record& b, const MergeOptions& options) {
  DemandSame(a, b, "the command", a.command, b.command);
  DemandSame(a, b, "the shard count", std::to_string(a.shard.count), std::to_string(b.shard.count));
  DemandSame(a, b, "the seed", std::to_string(a.seed), std::to_string(b.seed));
  DemandSame(a, b, "the text", a.text.name, b.text.name);
  DemandSame(a, b, "the size of the text", std::to_string(a.text.size_bytes), std::to_string(b.text.size_bytes));
  DemandSame(a, b, "the engine", a.engine.name, b.engine.name);
  DemandSame(a, b, "the engine's version", a.engine.version, b.engine.version);
  DemandSame(a, b, "the engine's program", a.engine.program, b.engine.program);
  DemandSameOptions(a, b, options.free_options);
  for (const std::string& name : options.fixed_environment) {
    DemandSame(a, b, "environment " + name, ValueOr(a.environment, name, "(absent)"),
               ValueOr(b.environment, name, "(absent)"));
  }
}

// A shard without a case of the witness knows nothing of its library; those that do must agree.
void DemandOneWitness(const Shards& shards, const std::string& name) {
  const Record* first = nullptr;
  for (const Record* shard : shards) {
    if (!shard->environment.contains(name)) continue;
    if (!first) first = shard;
    DemandSame(*first, *shard, "environment " + name, first->environment.at(name), shard->environment.at(name));
  }
}

void CheckEach(const Shards& shards) {
  for (const Record* shard : shards) {
    if (!shard->missing_shards.empty()) throw RecordError(ShardName(*shard) + " is itself a merge with missing shards");
    try {
      CheckTotals(*shard);
      CheckVerdicts(*shard);
    } catch (const RecordError& error) {
      throw RecordError(ShardName(*shard) + ": " + error.what());
    }
  }
}

// `shards` are sorted by index.
std::vector<int64_t> MissingShards(const Shards& shards) {
  std::vector<int64_t> missing;
  int64_t expected = 1;
  for (const Record* shard : shards) {
    for (; expected < shard->shard.index; ++expected) missing.push_back(expected);
    expected = shard->shard.index + 1;
  }
  for (; expected <= shards.front()->shard.count; ++expected) missing.push_back(expected);
  return missing;
}

void RefuseMissing(const std::vector<int64_t>& missing, int64_t count) {
  std::string list;
  for (int64_t index : missing)
    list += (list.empty() ? "" : ", ") + std::to_string(index) + "/" + std::to_string(count);
  throw RecordError("missing shards: " + list + "; --partial merges without them");
}

// Keeps only free options on which all agree.
void JoinOptions(Record& merged, const Record& shard, const std::set<std::string>& free_options) {
  for (const std::string& name : free_options) {
    const auto mine = merged.options.find(name);
    if (mine == merged.options.end()) continue;
    const auto other = shard.options.find(name);
    if (other == shard.options.end() || other->second != mine->second) merged.options.erase(mine);
  }
}

// Every distinct value of an entry, in the order of shards.
std::map<std::string, std::string> JoinEnvironments(const Shards& shards) {
  std::map<std::string, std::vector<std::string>> values;
  for (const Record* shard : shards) {
    for (const auto& [name, value] : shard->environment) {
      std::vector<std::string>& known = values[name];
      if (std::find(known.begin(), known.end(), value) == known.end()) known.push_back(value);
    }
  }
  std::map<std::string, std::string> joined;
  for (const auto& [name, known] : values) {
    for (const std::string& value : known) joined[name] += (&value == &known.front() ? "" : " | ") + value;
  }
  return joined;
}

void AppendResults(Record& merged, const Shards& shards) {
  std::map<std::pair<std::string, std::string>, const Record*> cases;
  std::map<std::string, const Record*> defects;
  for (const Record* shard : shards) {
    for (const CaseRecord& entry : shard->cases) {
      const auto [at, is_new] = cases.emplace(std::pair(entry.id, entry.engine), shard);
      if (!is_new) RefusePair(*at->second, *shard, "both hold case " + entry.id + " of engine " + entry.engine);
      merged.cases.push_back(entry);
    }
    for (const DefectRecord& defect : shard->defects) {
      const auto [at, is_new] = defects.emplace(defect.id, shard);
      if (!is_new) RefusePair(*at->second, *shard, "both hold defect " + defect.id);
      merged.defects.push_back(defect);
    }
  }
}

}  // namespace

Record Merge(std::span<const Record> records, const MergeOptions& options) {
  if (records.empty()) throw RecordError("nothing to merge");
  Shards shards;
  for (const Record& record : records) shards.push_back(&record);
  std::stable_sort(shards.begin(), shards.end(),
                   [](const Record* a, const Record* b) { return a->shard.index < b->shard.index; });
  CheckEach(shards);
  for (size_t i = 1; i < shards.size(); ++i) {
    DemandSameRun(*shards.front(), *shards[i], options);
    if (shards[i - 1]->shard.index == shards[i]->shard.index) {
      throw RecordError(ShardName(*shards[i]) + " was given twice");
    }
  }
  DemandOneWitness(shards, options.witness_environment);
  Record merged = *shards.front();
  merged.missing_shards = MissingShards(shards);
  if (!merged.missing_shards.empty() && !options.allow_partial) {
    RefuseMissing(merged.missing_shards, merged.shard.count);
  }
  merged.shard = {.index = 1, .count = 1};
  merged.environment = JoinEnvironments(shards);
  merged.cases.clear();
  merged.defects.clear();
  merged.listed = 0;
  AppendResults(merged, shards);
  for (const Record* shard : shards) {
    merged.created = std::min(merged.created, shard->created);  // the form sorts by time
    merged.interrupted = merged.interrupted || shard->interrupted;
    merged.listed += shard->listed;
    JoinOptions(merged, *shard, options.free_options);
  }
  Finish(merged, options.require);
  return merged;
}

}  // namespace plumbline::reports
