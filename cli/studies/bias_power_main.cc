// SPDX-License-Identifier: Apache-2.0
// How surely the check of gradients finds a relative bias of 2^-10 in one bf16 gradient of 4096 elements or more, and
// how often it accuses the engine without one: real errors of three engines, a planted factor, one repetition a seed.
// One JSON object a line for each seed and tensor, one more with the counts. Nothing here is part of a verdict.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

#include "conformance/contract/batch_source.h"
#include "conformance/contract/error.h"
#include "conformance/engines/engine_program.h"
#include "conformance/oracle/real_check.h"
#include "conformance/runner/plan.h"
#include "conformance/runner/real_truth.h"
#include "conformance/runner/schedule.h"

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
  std::string plain = "conformance/engines/torch_eager/torch_eager";
  std::string text = "LICENSE";
  std::string work;
  uint64_t first_seed = 1;
  int seeds = 200;
  int jobs = 2;
  int bias_log2 = -10;
  int64_t min_numel = 4096;
};

// One layer whose four matrices have 4096 to 16384 elements; AdamW, so that states are like those of real training.
Problem StudyProblem() {
  contract::Gpt2Spec model;
  model.layers = 1;
  model.width = 64;
  model.heads = 4;
  model.positions = 16;
  model.hidden = 256;
  model.vocab = 67;
  Problem problem{"bias-power", model, {}, 20};
  problem.plain.train_batch_size = problem.plain.micro_batch_size = 12;
  problem.plain.optimizer = contract::OptimizerKind::kAdamW;
  problem.plain.params.lr = 0.003;
  return problem;
}

Engine Start(const std::string& program) {
  Engine engine{{std::filesystem::absolute(program), {}}, {}};
  engine.description = Describe(engine.program, 60);
  return engine;
}

// The mean over steps of <engine - truth, truth> / <truth, truth> in one gradient: the engine's own bias.
double MeanSlope(const std::vector<StepSight>& truth, const std::vector<StepSight>& engine, size_t tensor) {
  double sum = 0;
  for (size_t s = 0; s < truth.size(); ++s) {
    const std::vector<double>& t = truth[s].of(TensorKind::kGradient)[tensor];
    const std::vector<double>& g = engine[s].of(TensorKind::kGradient)[tensor];
    double along = 0, squares = 0;
    for (size_t i = 0; i < t.size(); ++i) {
      along += (g[i] - t[i]) * t[i];
      squares += t[i] * t[i];
    }
    sum += along / squares;
  }
  return sum / static_cast<double>(truth.size());
}

void Demand(const std::string& error) {
  if (!error.empty()) contract::Fail(contract::ErrorCode::kInternal, error);
}

class Study {
 public:
  explicit Study(const Options& options)
      : options_(options),
        source_(contract::ReadTokenSource(options.text)),
        reference_(Start(options.reference)),
        candidate_(Start(options.candidate)),
        plain_(Start(options.plain)) {}

  void Run() {
    for (int i = 0; i < options_.seeds; ++i) RunSeed(options_.first_seed + static_cast<uint64_t>(i));
    fmt::print("{{\"seeds\": {}, \"accused_without_bias\": {}, \"planted\": {}, \"found\": {}, \"named_right\": {}}}\n",
               options_.seeds, accused_, planted_, found_, named_);
  }

 private:
  void RunSeed(uint64_t seed) {
    const std::filesystem::path work = std::filesystem::path(options_.work) / std::to_string(seed);
    const Problem problem = StudyProblem();
    PlanOptions plan;
    plan.seed = seed;
    RealTrajectoryTask trajectory(problem, plan);
    Schedule first(source_, work / "first");
    first.Add(reference_.program, reference_.description, {&trajectory});
    RunSchedule(first, options_.jobs, work / "engines1", std::stop_token());
    Demand(trajectory.error());

    const auto line = [&](const char* name, const contract::RunConfig& config) {
      return RealLineTask(CaseOf(problem, name, config, plan), trajectory.Starts(DType::kBF16));
    };
    contract::RunConfig layout = PlainLayout(problem, DType::kBF16);
    layout.data_degree = 3;
    layout.accumulation_steps = 2;
    layout.micro_batch_size = layout.train_batch_size / 6;
    layout.zero_stage = 2;
    RealLineTask truth = line("truth", problem.plain);
    RealLineTask plain = line("plain", PlainLayout(problem, DType::kBF16));
    RealLineTask other = line("other", OtherPlainLayout(problem, DType::kBF16));
    RealLineTask candidate = line("candidate", layout);
    Schedule second(source_, work / "second");
    second.Add(reference_.program, reference_.description, {&truth});
    second.Add(plain_.program, plain_.description, {&plain, &other});
    second.Add(candidate_.program, candidate_.description, {&candidate});
    RunSchedule(second, options_.jobs, work / "engines2", std::stop_token());
    for (const RealLineTask* task : {&truth, &plain, &other, &candidate}) Demand(task->error());
    Judge(seed, problem, {truth.sights(), plain.sights(), other.sights()}, candidate.sights());
    std::filesystem::remove_all(work);
  }

  void Judge(uint64_t seed, const Problem& problem, const Yardstick& yardstick, const std::vector<StepSight>& seen) {
    const RealResult clean = CheckGradients(problem.model, yardstick, seen);
    const bool accused = clean.check.outcome != reports::CheckOutcome::kPass;
    accused_ += accused;
    fmt::print("{{\"seed\": {}, \"accused\": {}, \"detail\": \"{}\"}}\n", seed, accused, clean.check.detail);
    for (const contract::ParameterSpec& parameter : contract::Parameters(problem.model)) {
      if (parameter.numel() < options_.min_numel) continue;
      std::vector<StepSight> biased = seen;
      for (StepSight& sight : biased) {
        for (double& value : sight.of(TensorKind::kGradient)[static_cast<size_t>(parameter.tensor_id)]) {
          value *= 1 + std::ldexp(1.0, options_.bias_log2);
        }
      }
      const RealResult result = CheckGradients(problem.model, yardstick, biased);
      const bool found = result.check.outcome == reports::CheckOutcome::kFail;
      const bool named = found && result.divergence && result.divergence->tensor.starts_with(parameter.name);
      ++planted_;
      found_ += found;
      named_ += named;
      const auto slope = [&](const std::vector<StepSight>& engine) {
        return MeanSlope(yardstick.truth, engine, static_cast<size_t>(parameter.tensor_id));
      };
      fmt::print(
          "{{\"seed\": {}, \"tensor\": \"{}\", \"numel\": {}, \"found\": {}, \"named\": {}, \"own_slope\": {:.3g}, "
          "\"plain_slope\": {:.3g}, \"other_plain_slope\": {:.3g}}}\n",
          seed, parameter.name, parameter.numel(), found, named, slope(seen), slope(yardstick.plain),
          slope(yardstick.other_plain));
    }
    std::fflush(stdout);
  }

  Options options_;
  contract::TokenSource source_;
  Engine reference_, candidate_, plain_;
  int64_t accused_ = 0, planted_ = 0, found_ = 0, named_ = 0;
};

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Power of the check of gradients against a small bias in bf16.");
  app.add_option("--reference", options.reference, "Program of the truth");
  app.add_option("--candidate", options.candidate, "Program that is judged");
  app.add_option("--plain", options.plain, "Program of the plain engine");
  app.add_option("--text", options.text, "Text to train on");
  app.add_option("--work", options.work, "Folder for cases and traces")->required();
  app.add_option("--first-seed", options.first_seed, "The first seed");
  app.add_option("--seeds", options.seeds, "How many");
  app.add_option("--jobs", options.jobs, "Engines at once");
  app.add_option("--bias-log2", options.bias_log2, "The planted factor is 1 + 2 to this");
  app.add_option("--min-numel", options.min_numel, "Tensors of at least so many elements");
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
