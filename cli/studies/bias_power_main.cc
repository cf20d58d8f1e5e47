// SPDX-License-Identifier: Apache-2.0
// How surely the check "bias" finds a factor of 1 +- 2^-10 in one bf16 gradient of 4096 elements or more, and how often
// it accuses an engine without one: real errors of a real engine, planted factors, one repetition a seed. One JSON
// object a line for each seed, one more with the counts. Nothing here is part of a verdict.
//
// Ranges of seeds may run at once in processes of their own: `--first 1 --last 50`, with a --work of their own.
#include <fmt/format.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "conformance/cases/bias_cases.h"
#include "conformance/contract/batch_source.h"
#include "conformance/contract/error.h"
#include "conformance/engines/engine_program.h"
#include "conformance/oracle/bias_check.h"
#include "conformance/runner/bias_truth.h"
#include "conformance/runner/plan.h"
#include "conformance/runner/schedule.h"
#include "conformance/runner/unrelated_steps.h"

namespace plumbline::conformance {
namespace {

using contract::DType;
using contract::TensorKind;

struct Engine {
  EngineProgram program;
  contract::EngineDescription description;
};

struct Options {
  std::string reference = "reference/reference_engine";
  std::string candidate = "optimized/engine/optimized";
  std::string witness = "conformance/engines/torch_eager/torch_eager";
  std::string text = "LICENSE";
  std::string work;
  uint64_t first = 1, last = 200;
  int jobs = 1;
  int bias_log2 = -10;
  int64_t ranks = 3, zero_stage = 2, accumulation = 2;
  // In the place of the problem's own.
  std::optional<int64_t> states, batch, positions;
  std::optional<double> initializer_range;
};

Problem StudyProblem(const Options& options) {
  Problem problem = BiasProblem();
  contract::Gpt2Spec model = problem.model.gpt2();
  model.positions = options.positions.value_or(model.positions);
  model.initializer_range = options.initializer_range.value_or(model.initializer_range);
  problem.model = model;
  problem.unrelated_states = options.states.value_or(problem.unrelated_states);
  problem.plain.train_batch_size = options.batch.value_or(problem.plain.train_batch_size);
  problem.plain.micro_batch_size = problem.plain.train_batch_size;
  return problem;
}

contract::RunConfig CandidateLayout(const Options& options, const Problem& problem) {
  contract::RunConfig layout = problem.plain;
  layout.storage = DType::kBF16;
  layout.data_degree = options.ranks;
  layout.zero_stage = options.zero_stage;
  layout.accumulation_steps = options.accumulation;
  layout.micro_batch_size = layout.train_batch_size / layout.data_degree / layout.accumulation_steps;
  return layout;
}

Engine Start(const std::string& program) {
  Engine engine{{std::filesystem::absolute(program), {}}, {}};
  engine.description = Describe(engine.program, 60);
  return engine;
}

void Demand(const std::string& error) {
  if (!error.empty()) contract::Fail(contract::ErrorCode::kInternal, error);
}

// Of this process and the engines that it started and that ended.
double CpuSeconds() {
  double seconds = 0;
  for (const auto who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    getrusage(who, &usage);
    seconds += static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
               1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  }
  return seconds;
}

// Every gradient of one tensor times 1 + bias: what a wrong factor in an engine would do.
std::vector<StepSight> WithBias(std::vector<StepSight> sights, size_t tensor, double bias) {
  for (StepSight& sight : sights) {
    for (double& value : sight.of(TensorKind::kGradient)[tensor]) value *= 1 + bias;
  }
  return sights;
}

class Study {
 public:
  explicit Study(const Options& options)
      : options_(options),
        problem_(StudyProblem(options)),
        source_(contract::ReadTokenSource(options.text)),
        reference_(Start(options.reference)),
        candidate_(Start(options.candidate)),
        witness_(Start(options.witness)) {}

  void Run() {
    for (uint64_t seed = options_.first; seed <= options_.last; ++seed) RunSeed(seed);
    fmt::print("{{\"seeds\": {}, \"accused_without_bias\": {}, \"planted\": {}, \"found\": {}, \"cpu_s\": {:.1f}}}\n",
               options_.last + 1 - options_.first, accused_, planted_, found_, CpuSeconds());
  }

 private:
  void RunSeed(uint64_t seed) {
    const std::filesystem::path work = std::filesystem::path(options_.work) / std::to_string(seed);
    PlanOptions plan;
    plan.seed = seed;
    plan.timeout_s = 600;
    BiasTruth truth(problem_, plan);
    UnrelatedStepsTask candidate(CaseOf(problem_, "candidate", CandidateLayout(options_, problem_), plan), 0,
                                 problem_.unrelated_states, DType::kBF16);
    Schedule schedule(source_, work / "schedule");
    schedule.Add(reference_.program, reference_.description, {&truth.reference_task()});
    for (RunTask* task : truth.witness_tasks()) schedule.Add(witness_.program, witness_.description, {task});
    schedule.Add(candidate_.program, candidate_.description, {&candidate});
    RunSchedule(schedule, options_.jobs, work / "engines");
    truth.Finish();
    Demand(truth.error());
    Demand(candidate.error());
    Judge(seed, truth.steps(), candidate.TakeSights());
    std::filesystem::remove_all(work);
  }

  void Judge(uint64_t seed, const std::vector<StepSight>& truth, const std::vector<StepSight>& seen) {
    const RealResult clean = CheckBias(problem_.model, truth, seen);
    const bool accused = clean.check.outcome == reports::CheckOutcome::kFail;
    accused_ += accused;
    std::string tensors;
    for (const SlopeSample& sample : MeasureSlopes(problem_.model, truth, seen)) {
      tensors += (tensors.empty() ? "" : ", ") + TensorJson(sample, truth, seen);
    }
    fmt::print("{{\"seed\": {}, \"accused\": {}, \"vacuous\": {}, \"tensors\": [{}]}}\n", seed, accused,
               clean.check.outcome == reports::CheckOutcome::kVacuous, tensors);
    std::fflush(stdout);
  }

  std::string TensorJson(const SlopeSample& sample, const std::vector<StepSight>& truth,
                         const std::vector<StepSight>& seen) {
    const double legal = LegalSlope(problem_.model.gpt2(), DType::kBF16);
    const SlopeFinding own = JudgeSlopes(sample, legal);
    std::string json = fmt::format(
        "{{\"name\": \"{}\", \"numel\": {}, \"mean\": {:.4g}, \"deviation\": {:.4g}, \"t\": {:.4g}, \"limit\": {:.4g}, "
        "\"found_from\": {:.4g}, \"effective_elems\": {:.4g}, \"lag_one\": {:.3f}",
        sample.name, sample.numel, own.mean, own.deviation, own.student_t, own.limit, own.found_from,
        own.effective_elems, own.lag_one);
    for (const auto& [name, sign] : {std::pair("plus", 1), std::pair("minus", -1)}) {
      const std::vector<StepSight> biased = WithBias(seen, sample.tensor, sign * std::ldexp(1.0, options_.bias_log2));
      const RealResult result = CheckBias(problem_.model, truth, biased);
      const bool found = result.check.outcome == reports::CheckOutcome::kFail && result.divergence &&
                         result.divergence->tensor == sample.name;
      ++planted_;
      found_ += found;
      for (const SlopeSample& other : MeasureSlopes(problem_.model, truth, biased)) {
        if (other.tensor != sample.tensor) continue;
        json +=
            fmt::format(", \"{}\": {{\"found\": {}, \"t\": {:.4g}}}", name, found, JudgeSlopes(other, legal).student_t);
      }
    }
    json += ", \"slopes\": [";
    for (size_t s = 0; s < sample.slopes.size(); ++s) json += fmt::format("{}{:.5g}", s ? ", " : "", sample.slopes[s]);
    return json + "]}";
  }

  Options options_;
  Problem problem_;
  contract::TokenSource source_;
  Engine reference_, candidate_, witness_;
  int64_t accused_ = 0, planted_ = 0, found_ = 0;
};

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Power and false alarms of the check for a small bias in bf16.");
  app.add_option("--reference", options.reference, "Program of the reference");
  app.add_option("--candidate", options.candidate, "Program that is judged");
  app.add_option("--witness", options.witness, "Program of the witness, the truth in fp64");
  app.add_option("--text", options.text, "Text to train on");
  app.add_option("--work", options.work, "Folder for cases and traces")->required();
  app.add_option("--first", options.first, "The first seed");
  app.add_option("--last", options.last, "The last seed");
  app.add_option("--jobs", options.jobs, "Engines at once");
  app.add_option("--bias-log2", options.bias_log2, "The planted factors are 1 +- 2 to this");
  app.add_option("--ranks", options.ranks, "Data degree of the candidate");
  app.add_option("--zero-stage", options.zero_stage, "ZeRO stage of the candidate");
  app.add_option("--accumulation", options.accumulation, "Accumulation steps of the candidate");
  app.add_option("--states", options.states, "Unrelated steps, if not the case's own");
  app.add_option("--batch", options.batch, "Samples of a step, if not the case's own");
  app.add_option("--positions", options.positions, "Tokens of a sample, if not the case's own");
  app.add_option("--initializer-range", options.initializer_range, "Of the weights, if not the case's own");
  CLI11_PARSE(app, argc, argv);
  try {
    Study(options).Run();
  } catch (const contract::Error& error) {
    std::fprintf(stderr, "bias_power: %s\n", error.what());
    return static_cast<int>(contract::ExitCode::kFailure);
  }
  return 0;
}

}  // namespace
}  // namespace plumbline::conformance

int main(int argc, char** argv) { return plumbline::conformance::Main(argc, argv); }
