// SPDX-License-Identifier: Apache-2.0
// What a truth is made of, with runs written here in the place of the reference's.
#include "conformance/runner/truth.h"

#include <gtest/gtest.h>

#include <set>

#include "conformance/cases/exact_cases.h"
#include "conformance/contract/file_io.h"
#include "conformance/contract/tensor_file.h"
#include "conformance/contract/testing/temporary_folder.h"
#include "conformance/oracle/sensitivity_check.h"
#include "conformance/oracle/testing/example_run.h"

namespace plumbline::conformance {
namespace {

using reports::CheckOutcome;

TEST(TruthRuns, AddOneUnitToEachThingThatTheOptimizerKeeps) {
  for (const Problem& problem : ExactCases().problems) {
    const std::vector<TruthRun> runs = TruthRuns(problem, PlanOptions{});
    EXPECT_TRUE(runs.front().perturbed.empty());
    EXPECT_FALSE(runs.front().spec.perturbation);
    std::set<std::string> kinds, ids;
    std::set<std::pair<std::string, int64_t>> masters;
    for (size_t i = 1; i < runs.size(); ++i) {
      ASSERT_TRUE(runs[i].spec.perturbation);
      kinds.insert(runs[i].perturbed);
      EXPECT_TRUE(ids.insert(runs[i].spec.id).second) << runs[i].spec.id;
      const contract::Perturbation& unit = *runs[i].spec.perturbation;
      if (runs[i].perturbed == "master") masters.emplace(unit.tensor, unit.index);
      EXPECT_EQ(runs[i].spec.dump_steps, runs.front().spec.dump_steps);
      EXPECT_EQ(runs[i].spec.steps, runs.front().spec.dump_steps.front() + 1) << "ends with what is compared";
      EXPECT_GE(runs[i].spec.steps, unit.step + 1 + kMinAmplifyingSteps);
      EXPECT_LE(runs[i].spec.steps, runs.front().spec.steps);
    }
    EXPECT_EQ(masters.size(), 2u) << "a unit of one may never reach its weight";
    const bool momentum = problem.plain.optimizer == contract::OptimizerKind::kModularMomentum;
    EXPECT_EQ(kinds, momentum ? (std::set<std::string>{"gradient", "moment", "master", "weight", "counter"})
                              : (std::set<std::string>{"gradient", "master", "weight"}));
  }
}

// A truth run and one perturbed run of the example, 50 steps: long enough to be judged.
class WrittenTruth : public testing::Test {
 protected:
  static constexpr int64_t kSteps = 50;

  void SetUp() override {
    contract::Case spec = ExampleCase(1);
    spec.steps = kSteps;
    runs_ = {{spec, ""}, {spec, "gradient"}};
    contract::Trace trace = ExampleTraces(1, 0).front();
    for (int64_t step = static_cast<int64_t>(trace.steps.size()); step < kSteps; ++step) {
      trace.steps.push_back(trace.steps.back());
      trace.steps.back().step = step;
    }
    for (const char* name : {"truth", "perturbed"}) {
      dirs_.push_back(folder_.path() / name);
      contract::TraceWriter writer(dirs_.back(), "example", 0, spec.config);
      for (const contract::StepRecord& step : trace.steps) writer.Step(step);
      writer.End(kSteps);
    }
    WriteCertificate(1.0);
    WriteWeights(0, {0, 0, 0, 0});
    WriteWeights(1, {1, 1, 0, 0});
  }

  void WriteCertificate(double share) {
    contract::Certificate certificate;
    certificate.quantities["stored"] = {1, "x"};
    certificate.liveness = {{"embed.weight", share, share}};
    contract::WriteFile(dirs_[0] / "certificate.json", contract::ToJson(certificate));
  }

  void WriteWeights(size_t run, const std::vector<int64_t>& values) {
    contract::WriteTensorFile(dirs_[run] / "rank0" / "tensors-000049.safetensors",
                              {{contract::MakeI64("weight/embed.weight@0", {4}, values)}, {}});
  }

  CheckOutcome Outcome(const std::string& name) {
    const Truth truth = ReadTruth(runs_, dirs_, std::nullopt);
    EXPECT_EQ(truth.error, "");
    for (const auto& check : truth.checks) {
      if (check.name == name) return check.outcome;
    }
    return CheckOutcome::kNotApplicable;
  }

  contract::testing::TemporaryFolder folder_;
  std::vector<TruthRun> runs_;
  std::vector<std::filesystem::path> dirs_;
};

TEST(TruthRuns, AddNoUnitToACaseThatEndsBefore) {
  for (Problem problem : ExactCases().problems) {
    for (int64_t steps : {1, 4, 5}) {
      problem.steps = steps;
      const std::vector<TruthRun> runs = TruthRuns(problem, PlanOptions{});
      EXPECT_EQ(runs.size() == 1, steps <= 4) << steps;
      for (const TruthRun& run : runs) {
        EXPECT_EQ(contract::ParseCase(contract::ToJson(run.spec), "case"), run.spec) << "the reference takes it";
      }
    }
  }
}

TEST_F(WrittenTruth, IsLiveAndAmplifies) {
  EXPECT_EQ(Outcome("liveness"), CheckOutcome::kPass);
  EXPECT_EQ(Outcome("amplification"), CheckOutcome::kPass);
  EXPECT_EQ(ReadTruth(runs_, dirs_, std::nullopt).run.steps.size(), static_cast<size_t>(kSteps));
}

TEST_F(WrittenTruth, IsVacuousWhereNothingMovesOrAUnitDoesNotSpread) {
  WriteCertificate(0.1);
  EXPECT_EQ(Outcome("liveness"), CheckOutcome::kVacuous);
  WriteWeights(1, {1, 0, 0, 0});
  EXPECT_EQ(Outcome("amplification"), CheckOutcome::kVacuous);
}

TEST_F(WrittenTruth, TakesTheBetterOfTwoPlacesOfOneKind) {
  runs_.push_back(runs_.back());
  dirs_.push_back(folder_.path() / "again");
  std::filesystem::create_directories(dirs_.back() / "rank0");
  for (const auto& [first, second, outcome] :
       {std::tuple(std::vector<int64_t>{1, 1, 0, 0}, std::vector<int64_t>{0, 1, 0, 0}, CheckOutcome::kPass),
        {{0, 1, 0, 0}, {1, 1, 0, 0}, CheckOutcome::kPass},
        {{0, 1, 0, 0}, {1, 0, 0, 0}, CheckOutcome::kVacuous}}) {
    WriteWeights(1, first);
    WriteWeights(2, second);
    EXPECT_EQ(Outcome("amplification"), outcome);
  }
}

TEST_F(WrittenTruth, IsVacuousWithoutPerturbedRuns) {
  runs_.pop_back();
  dirs_.pop_back();
  EXPECT_EQ(Outcome("amplification"), CheckOutcome::kVacuous);
}

TEST_F(WrittenTruth, IsNoneWhereTheReferenceFailed) {
  EXPECT_EQ(ReadTruth(runs_, dirs_, "it crashed").error, "it crashed");
  std::filesystem::remove(dirs_[0] / "certificate.json");
  EXPECT_NE(ReadTruth(runs_, dirs_, std::nullopt).error.find("certificate.json"), std::string::npos);
}

}  // namespace
}  // namespace plumbline::conformance
