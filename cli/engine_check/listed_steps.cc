// SPDX-License-Identifier: Apache-2.0
#include "cli/engine_check/listed_steps.h"

#include <algorithm>
#include <thread>
#include <tuple>

#include "conformance/contract/model_spec.h"
#include "conformance/runner/lone_judge.h"
#include "conformance/runner/plan.h"

namespace plumbline::cli {
namespace {

using contract::Case;
using contract::DType;
using Wanted = std::function<bool(const Case&)>;

bool IsGrouped(const Case& spec) { return spec.model.kv_heads() != spec.model.heads(); }

// With one key head for all query heads, a wrong pairing would not show.
bool HasSeveralGroups(const Case& spec) { return IsGrouped(spec) && spec.model.kv_heads() > 1; }

// What makes a case harder to step through, in the order in which it does.
auto Weight(const Case& spec) {
  return std::tuple(spec.config.data_degree, spec.config.storage != DType::kF32, spec.config.accumulation_steps,
                    spec.model.has_dropout(), IsGrouped(spec), spec.config.zero_stage);
}

// Trajectories and whole runs of the candidate; relations and steps without a trajectory are for `verify`.
std::vector<Case> CasesOf(conformance::Tier tier, const contract::EngineDescription& description) {
  conformance::PlanOptions options;
  options.tier = tier;
  options.with_witness = false;
  const conformance::Plan plan = conformance::MakePlan(options);
  std::vector<Case> cases;
  for (const conformance::PlannedCase& entry : plan.cases) {
    const conformance::Problem& problem = plan.list.problems[static_cast<size_t>(entry.problem)];
    if (entry.relation || entry.role != conformance::Role::kCandidate || problem.unrelated_states > 0) continue;
    if (!conformance::Declined(description, entry.spec)) cases.push_back(entry.spec);
  }
  std::stable_sort(cases.begin(), cases.end(), [](const Case& a, const Case& b) { return Weight(a) < Weight(b); });
  return cases;
}

class Chooser {
 public:
  explicit Chooser(const contract::EngineDescription& description)
      : description_(description), smoke_(CasesOf(conformance::Tier::kSmoke, description)) {}

  void Add(const std::string& name, const std::string& family, const Wanted& wanted) {
    const auto fits = [&](const Case& spec) { return spec.model.family() == family && wanted(spec); };
    auto found = std::find_if(smoke_.begin(), smoke_.end(), fits);
    if (found == smoke_.end()) {
      if (full_.empty()) full_ = CasesOf(conformance::Tier::kFull, description_);
      found = std::find_if(full_.begin(), full_.end(), fits);
      if (found == full_.end()) return steps_.push_back({name, std::nullopt});
    }
    steps_.push_back({name, *found});
  }

  std::vector<ListedStep> Take() { return std::move(steps_); }

 private:
  const contract::EngineDescription& description_;
  std::vector<Case> smoke_, full_;
  std::vector<ListedStep> steps_;
};

Wanted InStage(int64_t stage) {
  return [stage](const Case& spec) { return spec.config.data_degree > 1 && spec.config.zero_stage == stage; };
}

Wanted Stored(DType storage) {
  return [storage](const Case& spec) { return spec.config.storage == storage; };
}

void AddExact(Chooser& chooser) {
  chooser.Add("long run", "exact", [](const Case&) { return true; });
  chooser.Add("grouped_heads", "exact", HasSeveralGroups);
  chooser.Add("dropout", "exact", [](const Case& spec) { return spec.model.has_dropout(); });
  chooser.Add("accumulation", "exact", [](const Case& spec) { return spec.config.accumulation_steps > 1; });
  chooser.Add("bf16", "exact", Stored(DType::kBF16));
  chooser.Add("fp16", "exact", Stored(DType::kF16));
  chooser.Add("ranks", "exact", InStage(0));
  for (int64_t stage = 1; stage <= 3; ++stage) chooser.Add("zero " + std::to_string(stage), "exact", InStage(stage));
}

void AddReal(Chooser& chooser, const std::string& family) {
  chooser.Add(family, family, [](const Case&) { return true; });
  chooser.Add(family + " ranks", family, [](const Case& spec) { return spec.config.data_degree > 1; });
}

bool Claims(const contract::EngineDescription& description, const std::string& family) {
  return std::find(description.families.begin(), description.families.end(), family) != description.families.end();
}

Step Judged(const ListedStep& listed, const std::optional<conformance::Judgement>& judgement,
            const std::function<std::string(const std::string& id)>& line_of) {
  const std::string id = listed.spec->id;
  if (judgement && judgement->verdict == reports::Verdict::kPass) return {listed.name, Step::State::kOk, id};
  const std::string what =
      judgement ? std::string(reports::Name(judgement->verdict)) + ": " + judgement->message : "no data can be made";
  return {listed.name, Step::State::kMissing, id + ": " + what, line_of(id)};
}

}  // namespace

std::vector<ListedStep> ListedSteps(const contract::EngineDescription& description) {
  Chooser chooser(description);
  if (Claims(description, "exact")) AddExact(chooser);
  for (const char* family : {"gpt2", "llama"}) {
    if (Claims(description, family)) AddReal(chooser, family);
  }
  return chooser.Take();
}

bool CheckListedSteps(const CheckEngines& engines, const contract::TokenSource& source,
                      const std::filesystem::path& work_dir, std::stop_token stop,
                      const std::function<std::string(const std::string& id)>& line_of, const ShowStep& show) {
  const int jobs = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  conformance::LoneJudge judge({engines.reference, engines.plain, engines.candidate}, source, work_dir, jobs);
  for (const ListedStep& listed : ListedSteps(engines.candidate->description)) {
    if (!listed.spec) {
      show({listed.name, Step::State::kNotClaimed, "the description does not list it"});
      continue;
    }
    const std::optional<conformance::Judgement> judgement = judge.Judge(*listed.spec, stop);
    if (stop.stop_requested()) return false;
    const Step step = Judged(listed, judgement, line_of);
    show(step);
    if (step.state == Step::State::kMissing) return false;
  }
  return true;
}

}  // namespace plumbline::cli
