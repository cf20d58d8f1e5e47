// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/truth.h"

#include <algorithm>

#include "conformance/contract/error.h"
#include "conformance/contract/file_io.h"
#include "conformance/contract/tensor_file.h"
#include "conformance/contract/trace.h"
#include "conformance/oracle/sensitivity_check.h"

namespace plumbline::conformance {
namespace {

using contract::Perturbation;
using Kind = contract::Perturbation::Kind;

constexpr int64_t kPerturbedStep = 4;
// With a perturbed run's last step, some steps beyond those that a unit needs to spread.
constexpr int64_t kPerturbedSteps = kPerturbedStep + kMinAmplifyingSteps + 6;

// Modular SGD has no moment, and its update does not read the step counter. A unit of a master weight shows where the
// weight, an eighth of it, crosses to the next: in one of eight steps, so that in one of some hundred runs it never
// does. Two places make that one of some ten thousand.
std::vector<Kind> KindsOf(contract::OptimizerKind optimizer) {
  if (optimizer == contract::OptimizerKind::kModularSgd) {
    return {Kind::kGradient, Kind::kMaster, Kind::kMaster, Kind::kWeight};
  }
  return {Kind::kGradient, Kind::kMoment, Kind::kMaster, Kind::kMaster, Kind::kWeight, Kind::kCounter};
}

// Another tensor for each kind, its middle element; for the same kind again, the one before that.
Perturbation MakePerturbation(const contract::ExactSpec& model, Kind kind, bool again) {
  Perturbation perturbation;
  perturbation.kind = kind;
  perturbation.step = kPerturbedStep;
  if (kind == Kind::kCounter) return perturbation;
  const std::vector<contract::ParameterSpec> parameters = contract::Parameters(model);
  const contract::ParameterSpec& parameter = parameters[(3 * static_cast<size_t>(kind) + 2) % parameters.size()];
  perturbation.tensor = parameter.name;
  perturbation.index = parameter.numel() / 2 - (again ? 1 : 0);
  return perturbation;
}

void ReadAmplification(const std::vector<TruthRun>& runs, const std::vector<std::filesystem::path>& out_dirs,
                       Truth& truth) {
  if (runs.size() == 1) {
    truth.checks.push_back({"amplification", reports::CheckOutcome::kVacuous, 0,
                            "the case ends before step " + std::to_string(kPerturbedStep) +
                                ", in which a unit would be added: where it passes it shows nothing"});
    return;
  }
  const int64_t last = runs[1].spec.steps - 1;
  const std::string dump = contract::DumpName(0, last);
  const contract::TensorFile unperturbed = contract::ReadTensorFile(out_dirs.front() / dump);
  std::vector<Amplification> measured;
  for (size_t i = 1; i < runs.size(); ++i) {
    Amplification found =
        MeasureAmplification(runs[i].perturbed, unperturbed, contract::ReadTensorFile(out_dirs[i] / dump));
    if (measured.empty() || measured.back().kind != found.kind) {
      measured.push_back(std::move(found));
    } else if (found.differing > measured.back().differing) {
      measured.back() = std::move(found);
    }
  }
  truth.checks.push_back(CheckAmplification(measured, last - kPerturbedStep));
}

}  // namespace

std::vector<TruthRun> TruthRuns(const Problem& problem, const PlanOptions& options) {
  const contract::RunConfig& config = problem.plain;
  TruthRun truth{CaseOf(problem, "truth/" + problem.name, config, options), ""};
  const int64_t perturbed_steps = std::min(problem.steps, kPerturbedSteps);
  truth.spec.dump_steps = {perturbed_steps - 1};
  std::vector<TruthRun> runs = {truth};
  if (problem.steps <= kPerturbedStep) return runs;
  for (Kind kind : KindsOf(problem.plain.optimizer)) {
    TruthRun perturbed = truth;
    perturbed.perturbed = std::string(contract::Name(kind));
    const bool again = runs.back().perturbed == perturbed.perturbed;
    perturbed.spec.id += "/one-unit-in-" + perturbed.perturbed + (again ? "-again" : "");
    perturbed.spec.steps = perturbed_steps;
    perturbed.spec.perturbation = MakePerturbation(problem.model.exact(), kind, again);
    runs.push_back(perturbed);
  }
  return runs;
}

Truth ReadTruth(const std::vector<TruthRun>& runs, const std::vector<std::filesystem::path>& out_dirs,
                const std::optional<std::string>& first_error) {
  Truth truth;
  if (first_error) {
    truth.error = *first_error;
    return truth;
  }
  try {
    const std::vector<contract::Trace> ranks = {contract::ReadTrace(out_dirs.front(), 0)};
    MergedRun merged = MergeTraces(runs.front().spec, ranks);
    if (merged.checks.front().outcome != reports::CheckOutcome::kPass) {
      truth.error = merged.checks.front().detail;
      return truth;
    }
    truth.run = std::move(merged.run);
    truth.certificate =
        contract::ParseCertificate(contract::ReadFile(out_dirs.front() / "certificate.json"), "certificate.json");
    truth.checks.push_back(CheckLiveness(truth.certificate));
    ReadAmplification(runs, out_dirs, truth);
  } catch (const contract::Error& error) {
    truth.error = error.what();
  }
  return truth;
}

}  // namespace plumbline::conformance
