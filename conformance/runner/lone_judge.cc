// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/lone_judge.h"

#include <utility>

#include "conformance/cases/lone_case.h"
#include "conformance/contract/error.h"
#include "conformance/runner/schedule.h"

namespace plumbline::conformance {
namespace {

// What its truth depends on.
std::string KeyOf(const contract::Case& spec) {
  const Problem problem = ProblemOf(spec, "");
  contract::Case key;
  key.model = problem.model;
  key.config = problem.plain;
  if (!spec.model.is_exact()) {  // the yardstick is one of a storage type and its loss scale
    key.config.storage = spec.config.storage;
    key.config.loss_scale = spec.config.loss_scale;
    key.config.dynamic_loss_scale = spec.config.dynamic_loss_scale;
  }
  key.steps = problem.steps;
  key.seed = spec.seed;
  return contract::ToJson(key);
}

// A folder that is gone when its case is judged.
class Folder {
 public:
  explicit Folder(std::filesystem::path path) : path_(std::move(path)) {}
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// False where a case's data cannot be made: the text is too short, or no weights of tokens fit its layouts.
template <typename Make>
bool HasData(Make make) {
  try {
    make();
    return true;
  } catch (const contract::Error& error) {
    if (error.code() != contract::ErrorCode::kInvalidArgument) throw;
    return false;
  }
}

}  // namespace

LoneJudge::LoneJudge(const Engines& engines, const contract::TokenSource& source, std::filesystem::path work_dir,
                     int jobs)
    : engines_(engines), source_(source), work_dir_(std::move(work_dir)), jobs_(jobs) {}

void LoneJudge::Know(const PlannedCase& entry, const Truths& truths) {
  Known& known = known_[KeyOf(entry.spec)];
  if (known.truths) return;
  known.truths = &truths;
  known.problem = entry.problem;
}

std::optional<Judgement> LoneJudge::Judge(const contract::Case& spec, std::stop_token stop) {
  if (Declined(engines_.candidate->description, spec)) return std::nullopt;
  const Folder folder(work_dir_ / "case");
  const Known* known = TruthOf(spec, folder.path(), stop);
  if (!known) return std::nullopt;
  PlannedCase entry = MakePlan(LonePlanOptions(spec)).cases.front();
  entry.problem = known->problem;
  const std::unique_ptr<Trial> trial = known->truths->MakeTrial(entry, engines_.candidate->description);
  Schedule schedule(source_, folder.path() / "trial", stop);
  const auto add = [&] { schedule.Add(engines_.candidate->program, engines_.candidate->description, {trial.get()}); };
  if (!HasData(add)) return std::nullopt;
  RunSchedule(schedule, jobs_, folder.path() / "engines");
  if (stop.stop_requested()) return std::nullopt;
  return trial->judgement();
}

// After a stop request it is not complete, and not kept.
const LoneJudge::Known* LoneJudge::TruthOf(const contract::Case& spec, const std::filesystem::path& dir,
                                           std::stop_token stop) {
  const std::string key = KeyOf(spec);
  if (const auto found = known_.find(key); found != known_.end()) return &found->second;
  Known known;
  known.plan = std::make_unique<const Plan>(MakePlan(LonePlanOptions(spec)));
  known.own = std::make_unique<Truths>(known.plan->list, NeededTruths{{0, {spec.config.storage}}},
                                       LonePlanOptions(spec), source_);
  Schedule first(source_, dir / "first", stop);
  if (!HasData([&] { known.own->ScheduleTrajectories(*engines_.reference, first); })) return nullptr;
  RunSchedule(first, jobs_, dir / "engines");
  if (stop.stop_requested()) return nullptr;
  Schedule second(source_, dir / "second", stop);
  if (!HasData([&] { known.own->ScheduleRest(*engines_.reference, *engines_.plain, jobs_, second); })) return nullptr;
  RunSchedule(second, jobs_, dir / "engines");
  if (stop.stop_requested()) return nullptr;
  known.own->Finish();
  known.truths = known.own.get();
  return &known_.emplace(key, std::move(known)).first->second;
}

}  // namespace plumbline::conformance
