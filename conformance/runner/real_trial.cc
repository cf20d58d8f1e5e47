// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/real_trial.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "conformance/diagnosis/first_step.h"
#include "conformance/oracle/accumulation_check.h"
#include "conformance/oracle/loss_scale_check.h"
#include "conformance/oracle/real_check.h"
#include "conformance/oracle/storage_rounding.h"
#include "conformance/runner/loss_scalers.h"
#include "conformance/runner/resumed_run.h"

namespace plumbline::conformance {
namespace {

using reports::CheckOutcome;
using reports::CheckRecord;

bool GradientIsFinite(const StepSight& sight) {
  const auto& tensors = sight.of(contract::TensorKind::kGradient);
  return std::all_of(tensors.begin(), tensors.end(), [](const std::vector<double>& tensor) {
    return std::all_of(tensor.begin(), tensor.end(), [](double value) { return std::isfinite(value); });
  });
}

// A step from an injected state in which no gradient is found: no fault where a plain engine finds none either, since
// then the storage type or fp32 does not hold what fp64 does.
// `start`: the step of the plain engines that begins at this state.
std::optional<CheckRecord> WhyNoUpdate(const Yardstick& yardstick, int64_t start, const StepSight& seen) {
  if (GradientIsFinite(seen)) return std::nullopt;
  const auto is_lost = [&](const StepSight& plain) { return plain.step == start && !GradientIsFinite(plain); };
  const bool lost =
      std::ranges::any_of(yardstick.plain, is_lost) || std::ranges::any_of(yardstick.other_plain, is_lost);
  if (!lost) return std::nullopt;
  return CheckRecord{
      "update", CheckOutcome::kVacuous, 0,
      "step " + std::to_string(seen.step) +
          ": the gradient is not finite, nor is a plain engine's: the run leaves the range of its types"};
}

// `find_run` says in which run a divergence was seen.
template <typename FindRun>
void Add(Judgement& judgement, RealResult result, FindRun find_run) {
  if (!judgement.divergence && result.check.outcome == CheckOutcome::kFail && result.divergence) {
    judgement.diverged_run = find_run(*result.divergence);
    judgement.divergence = std::move(result.divergence);
  }
  JoinCheck(judgement.checks, std::move(result.check));
}

}  // namespace

RealTrial::RealTrial(contract::Case base, const contract::EngineDescription& description, const RealTruth& truth,
                     Beside beside)
    : base_(std::move(base)), description_(description), truth_(truth) {
  const auto add = [&](Part part, TaskRun task_run, contract::Case traced) {
    runs_.push_back({part, std::move(task_run), std::move(traced), std::nullopt, std::nullopt, std::nullopt});
  };
  add(Part::kTrajectory, {base_}, base_);
  if (description_.Has("deterministic")) {
    const bool saves = description_.Has("save") && HasResumedHalf(base_);
    const contract::Case again = SavingCase(base_, saves);
    add(Part::kAgain, {again}, again);
    if (saves) add(Part::kResumed, {ResumedCase(base_), nullptr, runs_.size() - 1}, AfterStep(base_, again.steps - 1));
    const contract::Case related = RelatedCase(base_);
    if (!(related.config == base_.config)) add(Part::kRelated, {related}, related);
    if (beside == Beside::kThreads) {
      contract::Case threads = SavingCase(base_, /*save=*/false);
      threads.id = base_.id + "/threads";
      add(Part::kThreads, {.spec = threads, .in_threads = true}, threads);
    }
  }
  const RealStarts& starts = truth_.Starts(base_.config.storage);
  for (size_t i = 0; i < starts.size(); ++i) {
    const contract::Case step = StepCase(base_, kInjectedSteps[i]);
    add(Part::kStep, {step, starts[i]}, step);
  }
  if (IsRoundedByStorage(base_.config.storage) && !starts.empty()) {
    const contract::Case unrounded = UnroundedCase(base_);
    add(Part::kUnrounded, {unrounded, truth_.Starts(contract::DType::kF32).back()}, unrounded);
  }
  for (const SkippedStart& start : truth_.skipped_starts()) {
    // fp16 holds no weights that large: it has overflows of its own.
    if (start.value != "inf" || base_.config.storage != contract::DType::kF16) AddSkipped(start);
  }
  if (contract::HasDynamicLossScale(base_.config)) AddOverflow();
}

// The run that saves makes the step after it too: what is wrong in one process alone is told from what a checkpoint has
// wrong.
void RealTrial::AddSkipped(const SkippedStart& start) {
  const bool saves = start.is_followed() && CountsUpdates(base_.config) && description_.Has("save");
  contract::Case skipped = SkippedCase(base_, start.value, start.is_followed(), saves);
  skipped.model = start.model;
  runs_.push_back({Part::kSkipped, {skipped, start.start, std::nullopt, start.batches}, skipped, {}, {}, {}});
  if (!saves) return;
  const contract::Case resumed = ResumedSkippedCase(skipped);
  runs_.push_back({Part::kSkippedResumed,
                   {resumed, nullptr, runs_.size() - 1, start.batches},
                   AfterStep(resumed, kSkippedStep),
                   {},
                   {},
                   {}});
}

void RealTrial::AddOverflow() {
  const RealStarts& starts = truth_.Starts(base_.config.storage);
  const std::vector<int64_t> steps = InjectedSteps(base_.steps);
  const auto place = std::find(steps.begin(), steps.end(), kSkippedStep);
  if (starts.empty() || place == steps.end()) return;
  RealStart start = *starts[static_cast<size_t>(place - steps.begin())];
  start.loss_scaler = OverflowingLossScaler(base_.config.dynamic_loss_scale);
  const contract::Case spec = OverflowCase(base_);
  runs_.push_back({Part::kOverflow, {spec, std::make_shared<const RealStart>(std::move(start))}, spec, {}, {}, {}});
}

std::vector<TaskRun> RealTrial::Runs() const {
  std::vector<TaskRun> runs;
  for (const Run& run : runs_) runs.push_back(run.task_run);
  return runs;
}

void RealTrial::Take(size_t index, const std::filesystem::path& out_dir, const CaseOutcome& outcome) {
  Run& run = runs_[index];
  Guard* guard = run.part == Part::kTrajectory ? &guard_ : nullptr;
  run.seen = Observe(run.traced, description_, out_dir, outcome, guard);
  if (StartOf(run) && outcome.kind == CaseOutcome::Kind::kOk) {
    run.sight = SeeStep(run.traced, out_dir, run.traced.first_step);
    if (run.traced.steps > 1) run.following_sight = SeeStep(run.traced, out_dir, run.traced.first_step + 1);
  }
  if (outcome.kind != CaseOutcome::Kind::kOk) run.first_untraced = FirstUntraced(run.traced, out_dir);
  if (std::any_of(runs_.begin(), runs_.end(), [](const Run& other) { return !other.seen; })) return;
  judgement_ = Judge();
  if (judgement_->verdict == reports::Verdict::kPass) AddGuard(*judgement_);
  lead_ = MakeLead();
  for (Run& seen : runs_) {
    seen.seen.reset();
    seen.sight.reset();
    seen.following_sight.reset();
  }
}

const RealTrial::Run* RealTrial::Find(Part part) const {
  const auto found = std::find_if(runs_.begin(), runs_.end(), [&](const Run& run) { return run.part == part; });
  return found == runs_.end() ? nullptr : &*found;
}

const RealStart* RealTrial::StartOf(const Run& run) const {
  // A skipped step has left the state from which its run began.
  const Run& begins = run.part == Part::kSkippedResumed ? runs_[*run.task_run.resumes] : run;
  return begins.task_run.start.get();
}

std::vector<RunEnd> RealTrial::Ends() const {
  std::vector<RunEnd> ends;
  for (const Run& run : runs_) {
    ends.push_back({&run.seen->outcome, NameOfRun(run.task_run.spec.id, base_.id), run.task_run.resumes});
  }
  return ends;
}

Judgement RealTrial::Judge() const {
  if (std::optional<Judgement> worst = JudgeEnds(Ends())) return *std::move(worst);
  Judgement judgement;
  if (!truth_.error().empty()) {
    judgement.no_truth = true;
    judgement.message = "there is no truth: " + truth_.error();
    return judgement;
  }
  AddTraceChecks(judgement);
  judgement.checks.push_back(truth_.truth_check());
  AddStepChecks(judgement);
  AddUpdateChecks(judgement);
  AddScaleChecks(judgement);
  AddRelations(judgement);
  AddTrajectory(judgement);
  Settle(judgement);
  return judgement;
}

void RealTrial::AddTraceChecks(Judgement& judgement) const {
  for (const Run& run : runs_) {
    for (const CheckRecord& check : run.seen->checks) JoinCheck(judgement.checks, check);
    int64_t step = run.traced.first_step;
    for (const std::optional<SightResult>* sight : {&run.sight, &run.following_sight}) {
      if (!*sight) continue;
      JoinCheck(judgement.checks, (*sight)->check);
      // Ranks that hold different things are seen where the step is put together.
      if (!(*sight)->sight && !judgement.divergence) {
        judgement.divergence = Divergence{step, "dump", "", 0, (*sight)->check.detail};
        judgement.diverged_run = static_cast<size_t>(&run - runs_.data());
      }
      ++step;
    }
  }
}

std::optional<std::vector<StepSight>> RealTrial::StepSights() const {
  std::vector<StepSight> sights;
  for (const Run& run : runs_) {
    if (run.part != Part::kStep) continue;
    if (!run.sight->sight) return std::nullopt;
    sights.push_back(*run.sight->sight);
  }
  return sights;
}

void RealTrial::AddStepChecks(Judgement& judgement) const {
  const std::optional<std::vector<StepSight>> seen = StepSights();
  if (!seen) return;  // the check of a dump has failed
  const std::vector<StepSight>& candidate = *seen;
  const Yardstick& yardstick = truth_.yardstick(base_.config.storage);
  RealResult gradients = CheckGradients(base_.model, yardstick, candidate);
  if (gradients.divergence) {
    const int64_t worst = gradients.divergence->step;
    gradients.divergence->step = FirstStepOf(base_.model, yardstick, candidate, *gradients.divergence);
    gradients.check.detail += OtherStepText(worst, gradients.divergence->step);
  }
  const auto run_of_step = [&](const Divergence& divergence) {
    const auto found = std::find_if(runs_.begin(), runs_.end(), [&](const Run& run) {
      return run.part == Part::kStep && run.traced.first_step == divergence.step;
    });
    return static_cast<size_t>(found - runs_.begin());
  };
  Add(judgement, std::move(gradients), run_of_step);
  if (AddsShares(base_.config)) {
    Add(judgement, CheckAccumulation(base_.model, yardstick.other_plain, candidate), run_of_step);
  }
  Add(judgement, CheckLosses(yardstick, candidate), run_of_step);
}

void RealTrial::AddUpdateChecks(Judgement& judgement) const {
  const Yardstick& yardstick = truth_.yardstick(base_.config.storage);
  for (const Run& run : runs_) {
    const auto this_run = [&](const Divergence&) { return static_cast<size_t>(&run - runs_.data()); };
    const auto update = [&](const std::optional<SightResult>& sight) {
      if (!sight || !sight->sight) return;
      const StepSight& seen = *sight->sight;
      if (auto lost = WhyNoUpdate(yardstick, run.traced.first_step, seen)) {
        return JoinCheck(judgement.checks, *std::move(lost));
      }
      const RealStart& start = *StartOf(run);
      if (run.part == Part::kSkippedResumed) {
        const StepSight whole = WithFrozenMastersOf(start, run.traced.model, seen);
        return Add(judgement, CheckUpdate(run.traced, start, whole), this_run);
      }
      Add(judgement, CheckUpdate(run.traced, start, seen), this_run);
    };
    const auto skip = [&](const std::optional<SightResult>& sight) {
      if (!sight || !sight->sight) return;
      Add(judgement, CheckSkipped(run.traced, *run.task_run.start, *sight->sight), this_run);
    };
    switch (run.part) {
      case Part::kSkipped:
        skip(run.sight);
        // As if the skipped step had not been: from the same state, after as many updates.
        update(run.following_sight);
        break;
      case Part::kOverflow:
        skip(run.sight);
        skip(run.following_sight);
        break;
      default:
        update(run.sight);
    }
  }
  if (contract::HasNormHistory(base_.config)) AddClippedCheck(judgement);
}

void RealTrial::AddClippedCheck(Judgement& judgement) const {
  const std::optional<std::vector<StepSight>> seen = StepSights();
  if (!seen) return;
  std::vector<contract::NormHistory> before;
  for (const Run& run : runs_) {
    if (run.part == Part::kStep) before.push_back(run.task_run.start->norm_history);
  }
  JoinCheck(judgement.checks, CheckClipped(base_.config, before, *seen));
}

std::optional<contract::LossScaler> RealTrial::ScalerBefore(const Run& run) const {
  const contract::LossScaler first = FirstLossScaler(base_.config.dynamic_loss_scale);
  if (!run.task_run.resumes) return run.task_run.start ? run.task_run.start->loss_scaler.value_or(first) : first;
  const std::optional<RunDigest>& saving = runs_[*run.task_run.resumes].seen->run;
  if (!saving) return std::nullopt;
  for (const StepDigest& step : saving->steps) {
    if (step.step == run.traced.first_step - 1 && step.real) return step.real->loss_scaler;
  }
  return std::nullopt;
}

void RealTrial::AddScaleChecks(Judgement& judgement) const {
  if (base_.config.storage != contract::DType::kF16) return;
  for (const Run& run : runs_) {
    if (!run.seen->run) continue;  // the check of its trace has failed
    if (!StartOf(run)) JoinCheck(judgement.checks, CheckNothingSkipped(*run.seen->run));
    const std::optional<contract::LossScaler> before = ScalerBefore(run);
    if (!contract::HasDynamicLossScale(base_.config) || !before) continue;
    Add(judgement, CheckLossScale(base_.config.dynamic_loss_scale, *before, *run.seen->run),
        [&](const Divergence&) { return static_cast<size_t>(&run - runs_.data()); });
  }
}

void RealTrial::AddRelations(Judgement& judgement) const {
  const Run& trajectory = *Find(Part::kTrajectory);
  if (!trajectory.seen->run) return;  // the check of the trace has failed
  const auto seen = [&](Part part) {
    const Run* run = Find(part);
    return run && run->seen->run ? &*run->seen->run : nullptr;  // null: its check of the trace has failed
  };
  const auto run_of = [&](Part part) {
    return [this, part](const Divergence&) { return static_cast<size_t>(Find(part) - runs_.data()); };
  };
  const auto compare = [&](const char* name, Part part, const RunDigest& expected, const RunDigest& other) {
    Add(judgement, CompareBitwise(name, base_.model, expected, other), run_of(part));
  };
  const RunDigest& whole = *trajectory.seen->run;
  const RunDigest first = Steps(whole, 0, static_cast<size_t>(NumSavedSteps(base_)));
  if (const RunDigest* again = seen(Part::kAgain)) compare("run to run", Part::kAgain, *again, first);
  if (const RunDigest* resumed = seen(Part::kResumed)) {
    Add(judgement, CompareResumed(base_.model, whole, *resumed), run_of(Part::kResumed));
  }
  if (const RunDigest* threads = seen(Part::kThreads))
    compare("processes and threads", Part::kThreads, *threads, first);
  if (const RunDigest* related = seen(Part::kRelated)) compare("same layout class", Part::kRelated, *related, first);
}

void RealTrial::AddGuard(Judgement& judgement) {
  const Run& trajectory = *Find(Part::kTrajectory);
  const contract::DType storage = base_.config.storage;
  GuardSteps(base_.model, truth_.yardstick(storage), *StepSights(), guard_);
  if (AddsShares(base_.config)) {
    GuardAccumulation(base_.model, truth_.yardstick(storage).other_plain, *StepSights(), guard_);
  }
  if (const Run* step = Find(Part::kStep)) {
    const RealStart& start = *step->task_run.start;
    GuardUpdate(step->traced, start, *step->sight->sight, guard_);
  }
  if (const Run* skipped = Find(Part::kSkipped)) {
    const RealStart& start = *skipped->task_run.start;
    GuardSkipped(skipped->traced, start, *skipped->sight->sight, guard_);
    if (skipped->following_sight) {
      GuardUpdate(skipped->traced, start, *skipped->following_sight->sight, guard_);
    }
  }
  if (contract::HasDynamicLossScale(base_.config)) {
    GuardLossScale(base_.config.dynamic_loss_scale, *ScalerBefore(trajectory), *trajectory.seen->run, guard_);
  }
  if (const Run* again = Find(Part::kAgain)) {
    const auto num_saved = static_cast<size_t>(NumSavedSteps(base_));
    GuardRelation(base_.model, *again->seen->run, Steps(*trajectory.seen->run, 0, num_saved), guard_);
  }
  GuardTrajectory(truth_.losses(), truth_.most_tokens(), truth_.drifted_losses(storage), trajectory.seen->run->Losses(),
                  guard_);
  judgement.checks.push_back(guard_.Check());
  Settle(judgement);
}

void RealTrial::AddTrajectory(Judgement& judgement) const {
  const Run& trajectory = *Find(Part::kTrajectory);
  if (!trajectory.seen->run) return;
  Add(judgement,
      CheckTrajectory(truth_.losses(), truth_.most_tokens(), truth_.drifted_losses(base_.config.storage),
                      trajectory.seen->run->Losses()),
      [](const Divergence&) { return size_t{0}; });
}

std::optional<Lead> RealTrial::MakeLead() const {
  if (judgement_->engine_failed) {
    return LeadOfStop(runs_[*judgement_->diverged_run].first_untraced, judgement_->message);
  }
  if (!judgement_->divergence || !judgement_->diverged_run) return std::nullopt;
  const Run& run = runs_[*judgement_->diverged_run];
  Lead lead{*judgement_->divergence, run.task_run};
  switch (run.part) {
    case Part::kStep:
    case Part::kUnrounded:
    case Part::kSkipped:
    case Part::kOverflow:
      break;
    case Part::kTrajectory:
    case Part::kThreads:
      lead.run.reset();  // losses drift apart: there is no first place; nor are two engines run against each other
      break;
    case Part::kSkippedResumed:  // the saving run has made the step too
      lead = LeadOfResumed(lead.divergence, run.task_run, runs_[*run.task_run.resumes].task_run,
                           runs_[*run.task_run.resumes].task_run);
      break;
    case Part::kResumed:
      lead = LeadOfResumed(lead.divergence, run.task_run, runs_[*run.task_run.resumes].task_run,
                           Find(Part::kTrajectory)->task_run);
      break;
    case Part::kAgain:
    case Part::kRelated:
      lead.run = Find(Part::kTrajectory)->task_run;
      lead.expected = run.task_run;
      break;
  }
  lead.noise = NoiseOf(base_.model, truth_.yardstick(base_.config.storage), lead.divergence);
  return lead;
}

}  // namespace plumbline::conformance
