// SPDX-License-Identifier: Apache-2.0
#include "cli/engine_check/first_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/engine_check/case_runs.h"
#include "cli/engine_check/first_case.h"
#include "conformance/contract/error.h"
#include "conformance/contract/tensor_file.h"
#include "conformance/contract/trace.h"
#include "conformance/diagnosis/dump.h"
#include "conformance/oracle/exact_check.h"
#include "conformance/oracle/step_sight.h"
#include "conformance/runner/other_state.h"

namespace plumbline::cli {
namespace {

using conformance::RunDigest;
using contract::TensorKind;

constexpr int64_t kManySteps = 12;
constexpr int64_t kSavedStep = 5;
constexpr size_t kTimesInAList = 3;

// The reference's, or an error of ours.
RunDigest TruthOf(const conformance::Engine& reference, const std::filesystem::path& folder, const std::string& name,
                  const std::filesystem::path& case_dir, std::stop_token stop) {
  const SeenRun run = CaseRuns(reference, folder, stop).Run(case_dir, name);
  contract::Check(run.seen.run.has_value(), "the reference runs the case of the check");
  return *run.seen.run;
}

// Ended well, and traces that can be read: or what is wrong, and in which step of the check.
struct Fault {
  std::string step;
  std::string what;
};

std::optional<Fault> FaultOf(const SeenRun& run) {
  if (run.seen.outcome.kind != conformance::CaseOutcome::Kind::kOk) {
    return Fault{"case", conformance::TextOf(run.seen.outcome)};
  }
  const std::string failure = conformance::FirstFailure(run.seen);
  if (!failure.empty() || !run.seen.run) return Fault{"trace", failure};
  return std::nullopt;
}

// What is wrong with loss and tokens of a step, which a wrong forward pass shows first; nothing where they are right.
std::string WrongLoss(const conformance::StepDigest& truth, const conformance::StepDigest& step) {
  if (truth.tokens != step.tokens) return fmt::format("tokens {}, reference {}", step.tokens, truth.tokens);
  return truth.loss == step.loss ? "" : fmt::format("loss {}, reference {}", step.loss, truth.loss);
}

// Each file must hold exactly the slices of the trace, with their digests.
std::string WrongDump(const contract::Case& spec, const std::filesystem::path& out_dir) {
  if (!spec.model.is_exact()) {
    const conformance::SightResult sight = conformance::SeeStep(spec, out_dir, 0);
    return sight.sight ? "" : sight.check.detail;
  }
  try {
    const conformance::Dump dump = conformance::ReadDump(spec, out_dir, 0);
    const std::vector<contract::ParameterSpec> parameters = contract::Parameters(spec.model);
    for (const TensorKind kind : contract::kTensorKinds) {
      for (const contract::SliceDigest& entry : dump.records.front().of(kind)) {
        const auto named = [&](const auto& parameter) { return parameter.name == entry.tensor; };
        const auto tensor = std::find_if(parameters.begin(), parameters.end(), named) - parameters.begin();
        const std::string what = fmt::format("{} of {}", Name(kind), entry.tensor);
        const std::vector<conformance::DumpedSlice>& slices = dump.of(kind, static_cast<size_t>(tensor));
        if (slices.size() != 1) return what + " is not dumped as one slice";
        if (slices[0].hash != entry.digest.hash) return what + " was dumped with other values than were traced";
      }
    }
  } catch (const contract::Error& error) {
    return error.what();
  }
  return "";
}

class FirstSteps {
 public:
  FirstSteps(const conformance::Engine& reference, const conformance::Engine& candidate,
             const contract::TokenSource& source, const std::filesystem::path& folder, std::stop_token stop,
             const ShowStep& show)
      : reference_(reference),
        candidate_(candidate),
        source_(source),
        folder_(folder),
        stop_(stop),
        show_(show),
        runs_(candidate, folder, stop) {}

  bool Check() {
    if (!CheckOneStep()) return false;
    if (!CheckDump()) return false;
    if (!spec_.model.is_exact()) return CheckList();
    return CheckManySteps() && CheckResume() && CheckList();
  }

 private:
  bool Ok(const std::string& name, const std::string& seen) {
    show_({name, Step::State::kOk, seen});
    return true;
  }
  bool Missing(const std::string& name, const std::string& seen, const SeenRun& run) {
    if (!stop_.stop_requested()) show_({name, Step::State::kMissing, seen, run.again});
    return false;
  }
  bool NotClaimed(const std::string& name, const std::string& feature) {
    show_({name, Step::State::kNotClaimed, "the description does not list " + feature});
    return true;
  }

  std::filesystem::path Make(const std::string& name, const contract::Case& spec) {
    return runs_.MakeCase(name, DataOf(spec, source_));
  }

  bool CheckOneStep() {
    spec_ = FirstCase(candidate_.description, 1);
    const std::filesystem::path case_dir = Make("case-first", spec_);
    const SeenRun run = runs_.Run(case_dir, "out-first");
    const auto fault = FaultOf(run);
    if (fault && fault->step == "case") return Missing("case", fault->what, run);
    Ok("case", fmt::format("{}, {}, {}: one rank, one step", spec_.model.family(),
                           contract::StorageName(spec_.config.storage), contract::Name(spec_.config.optimizer)));
    if (fault) return Missing(fault->step, fault->what, run);
    Ok("trace", fmt::format("{} tensors of {} parameters", CountOf(*run.seen.run), Parameters(spec_.model).size()));
    return !spec_.model.is_exact() || CheckNumbers(case_dir, run);
  }

  static size_t CountOf(const RunDigest& run) {
    size_t count = 0;
    for (const auto& tensors : run.steps.front().tensors) count += tensors.size();
    return count;
  }

  // In the order in which a step computes: what comes before the first that differs is right.
  bool CheckNumbers(const std::filesystem::path& case_dir, const SeenRun& run) {
    const RunDigest truth = TruthOf(reference_, folder_, "reference-first", case_dir, stop_);
    const conformance::StepDigest& step = truth.steps.front();
    const std::string wrong_loss = WrongLoss(step, run.seen.run->steps.front());
    if (!wrong_loss.empty()) return Missing("loss", "step 0: " + wrong_loss, run);
    Ok("loss", fmt::format("{}, of {} tokens", step.loss, step.tokens));
    const auto divergence = conformance::CompareExactly(spec_.model, truth, *run.seen.run).divergence;
    if (divergence && divergence->quantity == "gradient") return Missing("gradient", TextOf(*divergence), run);
    Ok("gradient", "every digest equals the reference's");
    if (divergence) return Missing("update", TextOf(*divergence), run);
    return Ok("update", "so do moments, master weights and weights");
  }

  static std::string TextOf(const conformance::Divergence& divergence) {
    const std::string of = divergence.tensor.empty() ? "" : divergence.quantity + " of " + divergence.tensor + ": ";
    const std::string more =
        divergence.num_tensors > 1 ? fmt::format("; it differs in {} tensors", divergence.num_tensors) : "";
    return fmt::format("step {}: {}{}{}", divergence.step, of, divergence.detail, more);
  }

  bool CheckDump() {
    if (!candidate_.description.Has("dump")) return NotClaimed("dump", "feature dump");
    contract::Case spec = spec_;
    spec.dump_steps = {0};
    const SeenRun run = runs_.Run(Make("case-dump", spec), "out-dump");
    if (const auto fault = FaultOf(run)) return Missing("dump", fault->what, run);
    const std::string wrong = WrongDump(spec, run.out_dir);
    return wrong.empty() ? Ok("dump", "tensors of step 0 have the digests of the trace") : Missing("dump", wrong, run);
  }

  bool CheckManySteps() {
    many_ = FirstCase(candidate_.description, kManySteps);
    many_dir_ = Make("case-steps", many_);
    many_truth_ = TruthOf(reference_, folder_, "reference-steps", many_dir_, stop_);
    const SeenRun run = runs_.Run(many_dir_, "out-steps");
    return Equals("steps", run, many_truth_) && Ok("steps", fmt::format("{} steps equal the reference's", kManySteps));
  }

  // Shows the step as missing where it does not.
  bool Equals(const std::string& name, const SeenRun& run, const RunDigest& truth) {
    if (const auto fault = FaultOf(run)) return Missing(name, fault->what, run);
    const auto divergence = conformance::CompareExactly(many_.model, truth, *run.seen.run).divergence;
    return divergence ? Missing(name, TextOf(*divergence), run) : true;
  }

  bool CheckResume() {
    if (!candidate_.description.Has("save")) return NotClaimed("resume", "feature save");
    contract::Case spec = many_;
    spec.save_steps = {kSavedStep};
    const SeenRun saving = runs_.Run(Make("case-save", spec), "out-save");
    if (!Equals("resume", saving, many_truth_)) return false;
    const std::filesystem::path checkpoint = saving.out_dir / fmt::format("checkpoint-{:06}", kSavedStep);
    if (!std::filesystem::is_directory(checkpoint)) {
      return Missing("resume",
                     "save_steps has " + std::to_string(kSavedStep) + ", and there is no OUT_DIR/" +
                         checkpoint.filename().string(),
                     saving);
    }
    contract::CaseData data = DataOf(many_, source_);
    data.spec.resume = true;
    conformance::ReplaceState(data);
    const SeenRun resumed = runs_.Run(runs_.MakeCase("case-resume", data, checkpoint), "out-resume");
    RunDigest rest = many_truth_;
    rest.steps.erase(rest.steps.begin(), rest.steps.begin() + kSavedStep + 1);
    return Equals("resume", resumed, rest) &&
           Ok("resume", fmt::format("saved after step {}; the rest equals the reference's", kSavedStep));
  }

  bool CheckList() {
    if (!candidate_.description.batch) return NotClaimed("batch", "\"batch\": true");
    const std::filesystem::path case_dir = spec_.model.is_exact() ? many_dir_ : folder_ / "case-first";
    const std::vector<SeenRun> runs = runs_.RunList(case_dir, "out-batch", kTimesInAList);
    for (const SeenRun& run : runs) {
      if (const auto fault = FaultOf(run)) return Missing("batch", fault->what, run);
      if (spec_.model.is_exact() && !Equals("batch", run, many_truth_)) return false;
    }
    return Ok("batch", fmt::format("{} cases in one start", kTimesInAList));
  }

  const conformance::Engine& reference_;
  const conformance::Engine& candidate_;
  const contract::TokenSource& source_;
  const std::filesystem::path& folder_;
  std::stop_token stop_;
  const ShowStep& show_;
  CaseRuns runs_;
  contract::Case spec_;  // of one step
  contract::Case many_;  // of several
  std::filesystem::path many_dir_;
  RunDigest many_truth_;
};

}  // namespace

bool CheckFirstSteps(const conformance::Engine& reference, const conformance::Engine& candidate,
                     const contract::TokenSource& source, const std::filesystem::path& folder, std::stop_token stop,
                     const ShowStep& show) {
  return FirstSteps(reference, candidate, source, folder, stop, show).Check();
}

}  // namespace plumbline::cli
