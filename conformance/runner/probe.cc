// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/probe.h"

#include <algorithm>
#include <utility>

#include "conformance/cases/lone_case.h"
#include "conformance/contract/error.h"
#include "conformance/diagnosis/micro_batches.h"

namespace plumbline::conformance {
namespace {

using contract::TensorKind;

// The case for the reference: one rank, the whole batch at once, up to the step.
contract::Case PlainCase(const contract::Case& spec, int64_t step) {
  contract::Case plain = spec;
  plain.config = ProblemOf(spec, "").plain;
  plain.id = "diagnosis/reference";
  plain.steps = step + 1 - spec.first_step;
  plain.save_steps.clear();
  plain.dump_steps.clear();
  return plain;
}

}  // namespace

DumpTask::DumpTask(std::vector<Wanted> wanted) : wanted_(std::move(wanted)) {
  for (Wanted& entry : wanted_) {
    entry.run.spec.dump_steps = entry.steps;
    dumps_.emplace_back(entry.steps.size());
  }
}

std::vector<TaskRun> DumpTask::Runs() const {
  std::vector<TaskRun> runs;
  for (const Wanted& entry : wanted_) runs.push_back(entry.run);
  return runs;
}

void DumpTask::Take(size_t index, const std::filesystem::path& out_dir, const CaseOutcome& outcome) {
  const Wanted& entry = wanted_[index];
  if (outcome.kind != CaseOutcome::Kind::kOk) {
    if (error_.empty()) error_ = TextOf(outcome);
    return;
  }
  try {
    for (size_t i = 0; i < entry.steps.size(); ++i) {
      dumps_[index][i] = ReadDump(entry.run.spec, out_dir, entry.steps[i]);
    }
  } catch (const contract::Error& error) {
    if (error_.empty()) error_ = error.what();
  }
}

const Dump* DumpTask::dump(size_t run, int64_t step) const {
  for (size_t i = 0; i < wanted_[run].steps.size(); ++i) {
    if (wanted_[run].steps[i] == step && dumps_[run][i]) return &*dumps_[run][i];
  }
  return nullptr;
}

std::string ReferenceProbe::Key(const TaskRun& run, int64_t step) {
  return contract::ToJson(PlainCase(run.spec, step)) + "/" +
         std::to_string(run.spec.config.accumulation_steps * run.spec.config.data_degree) + "/" +
         std::to_string(reinterpret_cast<uintptr_t>(run.start.get())) + "/" +
         std::to_string(reinterpret_cast<uintptr_t>(run.batches.get()));
}

ReferenceProbe::ReferenceProbe(const TaskRun& run, int64_t step, const contract::TokenSource& source)
    : is_exact_(run.spec.model.is_exact()), parameters_(contract::Parameters(run.spec.model)), step_(step) {
  const contract::Case plain = PlainCase(run.spec, step);
  const contract::Batches batches =
      run.batches ? *run.batches
                  : contract::MakeBatches(source, plain.model,
                                          {plain.seed, plain.first_step, plain.steps, plain.config.train_batch_size});
  const TaskRun truth{plain, run.start, std::nullopt, run.batches};
  std::vector<int64_t> steps = {step};
  if (step > plain.first_step) steps.insert(steps.begin(), step - 1);
  Add(truth, steps);
  const int64_t parts = run.spec.config.accumulation_steps * run.spec.config.data_degree;
  if (parts > 1) AddMicroBatches(batches, run);
  AddConfusions(batches, run);
  task_ = std::make_unique<DumpTask>(std::move(wanted_));
}

void ReferenceProbe::Add(TaskRun run, std::vector<int64_t> steps) { wanted_.push_back({std::move(run), steps}); }

// Micro-batch a of rank r is the (a R + r)-th block of samples (docs/exact-family.md, "Who computes which sample").
void ReferenceProbe::AddMicroBatches(const contract::Batches& batches, const TaskRun& run) {
  const int64_t samples = run.spec.config.micro_batch_size;
  for (int64_t first = 0; first < batches.batch; first += samples) {
    TaskRun part = wanted_.front().run;
    part.batches =
        std::make_shared<const contract::Batches>(OnlySamples(batches, step_, first, first + samples, is_exact_));
    share_runs_.push_back(wanted_.size());
    share_factors_.push_back(is_exact_ ? 1 : ShareFactor(batches, step_, first, first + samples));
    share_tokens_.push_back(static_cast<double>(WeightedTokens(batches, step_, first, first + samples)));
    Add(std::move(part), {step_});
  }
}

void ReferenceProbe::AddConfusions(const contract::Batches& batches, const TaskRun& run) {
  const auto add = [&](const char* hypothesis, std::string what, contract::Batches other, int64_t step) {
    TaskRun changed = wanted_.front().run;
    changed.batches = std::make_shared<const contract::Batches>(std::move(other));
    changed_.push_back({hypothesis, std::move(what), wanted_.size(), step});
    Add(std::move(changed), {step});
  };
  const int64_t samples = run.spec.config.micro_batch_size;
  if (samples < batches.batch) {
    add("neighbour_data", "labels of the next micro-batch", MovedLabels(batches, step_, samples), step_);
    add("neighbour_data", "labels of the micro-batch before", MovedLabels(batches, step_, -samples), step_);
  }
  add("neighbour_data", "labels of the next sample", MovedLabels(batches, step_, 1), step_);
  if (step_ == batches.first_step) return;
  add("neighbour_data", "the batch of the step before", WithStepOf(batches, step_, step_ - 1), step_);
  // Masks of dropout are those of a step, so the step's gradient at older weights cannot be had.
  if (run.spec.model.has_dropout()) return;
  add("stale_gradient", "", WithStepOf(batches, step_ - 1, step_), step_ - 1);
}

Values ReferenceProbe::Truth(TensorKind kind, size_t tensor) const { return WholeOf(0, step_, kind, tensor); }

std::optional<TensorState> ReferenceProbe::Before(size_t tensor) const {
  if (!task_->dump(0, step_ - 1)) return std::nullopt;
  const auto whole = [&](TensorKind kind) { return WholeOf(0, step_ - 1, kind, tensor); };
  return TensorState{whole(TensorKind::kMaster), whole(TensorKind::kMoment), whole(TensorKind::kSecondMoment)};
}

Values ReferenceProbe::WholeOf(size_t run, int64_t step, TensorKind kind, size_t tensor) const {
  const Dump* dump = task_->dump(run, step);
  return dump ? WholeTensor(dump->of(kind, tensor), parameters_[tensor].numel()) : Values{};
}

std::vector<Values> ReferenceProbe::Shares(size_t tensor) const {
  std::vector<Values> shares;
  for (size_t i = 0; i < share_runs_.size(); ++i) {
    Values share = WholeOf(share_runs_[i], step_, TensorKind::kGradient, tensor);
    if (share.empty()) return {};
    for (double& value : share) value *= share_factors_[i];
    shares.push_back(std::move(share));
  }
  return shares;
}

Values ReferenceProbe::Loss() const {
  const Dump* dump = task_->dump(0, step_);
  return dump && !dump->records.empty() ? Values{dump->records.front().loss} : Values{};
}

std::vector<Values> ReferenceProbe::LossShares() const {
  std::vector<Values> shares;
  for (size_t i = 0; i < share_runs_.size(); ++i) {
    const Dump* dump = task_->dump(share_runs_[i], step_);
    if (!dump || dump->records.empty()) return {};
    shares.push_back({dump->records.front().loss * share_factors_[i]});
  }
  return shares;
}

std::vector<ChangedGradient> ReferenceProbe::Changed(size_t tensor) const {
  std::vector<ChangedGradient> changed;
  for (const ChangedRun& entry : changed_) {
    Values values = WholeOf(entry.run, entry.step, TensorKind::kGradient, tensor);
    if (!values.empty()) changed.push_back({entry.hypothesis, entry.what, std::move(values)});
  }
  return changed;
}

}  // namespace plumbline::conformance
