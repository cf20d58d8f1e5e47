// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/memory_check.h"

#include <gtest/gtest.h>

#include <functional>

#include "conformance/oracle/memory_formula.h"
#include "conformance/oracle/testing/example_gpt2.h"
#include "conformance/oracle/testing/example_run.h"

namespace plumbline::conformance {
namespace {

using contract::Trace;
using reports::CheckOutcome;

// A tight case of stage 3: embed, pos and the layer cannot be gathered at one time.
contract::Case Tight() {
  contract::Case spec = ExampleCase(2, 3);
  spec.config.accumulation_steps = 3;
  spec.config.reduce_bucket_elems = 30;  // up and down apart
  spec.config.persistence_threshold_elems = 10;
  spec.config.prefetch_bucket_elems = 20;
  spec.config.max_live_elems = 60;
  return spec;
}

std::vector<Trace> TracesOf(const contract::Case& spec, const contract::RunConfig& did) {
  std::vector<Trace> traces = ExampleTraces(spec.config.data_degree, 0);
  for (Trace& trace : traces) {
    for (auto& step : trace.steps) step.memory_peak_bytes = ExpectedMemoryPeak(spec.model, did);
  }
  return traces;
}

std::vector<Trace> TracesOf(const contract::Case& spec) { return TracesOf(spec, spec.config); }

TEST(CheckMemory, PassesTheFormulaAndCountsStepsRanksAndCategories) {
  const auto check = CheckMemory(Tight(), TracesOf(Tight()), true);
  EXPECT_EQ(check.outcome, CheckOutcome::kPass) << check.detail;
  EXPECT_EQ(check.compared, kExampleSteps * 2 * 6);
}

TEST(CheckMemory, FailsOneByteMoreOrLessInAnyStepRankAndCategory) {
  for (const auto& [category, bytes] : ExpectedMemoryPeak(Tight().model, Tight().config)) {
    for (const int64_t off : {-1, 1}) {
      for (size_t rank : {0u, 1u}) {
        std::vector<Trace> traces = TracesOf(Tight());
        traces[rank].steps[3].memory_peak_bytes[category] += off;
        const auto check = CheckMemory(Tight(), traces, true);
        EXPECT_EQ(check.outcome, CheckOutcome::kFail) << category;
        EXPECT_EQ(check.detail, "step 3, rank " + std::to_string(rank) + ": " + category + " " +
                                    std::to_string(bytes + off) + " bytes, the formula says " + std::to_string(bytes) +
                                    " bytes");
      }
    }
  }
}

TEST(CheckMemory, FailsACategoryThatIsMissingOrAdditional) {
  std::vector<Trace> traces = TracesOf(Tight());
  traces[1].steps[0].memory_peak_bytes.erase("communication");
  auto check = CheckMemory(Tight(), traces, true);
  EXPECT_EQ(check.outcome, CheckOutcome::kFail);
  EXPECT_NE(check.detail.find("rank 1: communication nothing"), std::string::npos) << check.detail;
  traces = TracesOf(Tight());
  traces[0].steps[1].memory_peak_bytes["cache"] = 0;
  check = CheckMemory(Tight(), traces, true);
  EXPECT_EQ(check.outcome, CheckOutcome::kFail);
  EXPECT_NE(check.detail.find("step 1, rank 0: cache 0 bytes, the formula says nothing"), std::string::npos);
}

// What an engine would report that did something else than its config says.
TEST(CheckMemory, FailsEachKindOfEngineThatHoldsMoreThanItShould) {
  const contract::Case spec = Tight();
  const struct {
    const char* what;
    std::function<void(contract::RunConfig&)> change;
  } kTable[] = {
      {"sharding of weights is off", [](auto& config) { config.zero_stage = 2; }},
      {"sharding of everything is off", [](auto& config) { config.zero_stage = 0; }},
      {"gathers are kept too long", [](auto& config) { config.max_live_elems = 1'000'000; }},
      {"gathers come too early",
       [](auto& config) { config.prefetch_bucket_elems = config.max_live_elems = 1'000'000; }},
      {"small parameters are sharded too", [](auto& config) { config.persistence_threshold_elems = 0; }},
      {"more parameters stay whole", [](auto& config) { config.persistence_threshold_elems = 22; }},
      {"everything is in one bucket", [](auto& config) { config.reduce_bucket_elems = 1000; }},
      {"a later micro-batch is received in place", [](auto& config) { config.accumulation_steps = 1; }},
      {"storage is fp32", [](auto& config) { config.storage = contract::DType::kF32; }},
      {"moments were never made", [](auto& config) { config.optimizer = contract::OptimizerKind::kModularSgd; }},
      {"the whole batch is run at once", [](auto& config) { config.micro_batch_size *= 3; }},
  };
  contract::Case bf16 = spec;
  bf16.config.storage = contract::DType::kBF16;
  ASSERT_EQ(CheckMemory(bf16, TracesOf(bf16), true).outcome, CheckOutcome::kPass);
  for (const auto& [what, change] : kTable) {
    contract::RunConfig did = bf16.config;
    change(did);
    EXPECT_EQ(CheckMemory(bf16, TracesOf(bf16, did), true).outcome, CheckOutcome::kFail) << what;
  }
}

// Numbers that no config explains, by hand: the example of two ranks in one bucket has 126 elements, 320 padded.
TEST(CheckMemory, FailsForgottenPaddingAndTheWholeForThePart) {
  contract::Case spec = ExampleCase(2, 1);
  spec.config.reduce_bucket_elems = 1000;
  const struct {
    const char* category;
    int64_t right, wrong;
  } kTable[] = {
      {"weights", 4 * 320, 4 * 126},                        // parameters without padding
      {"weights", 4 * 320, 4 * 288},                        // parameters padded, the bucket not
      {"gradients", 4 * 320 + 4 * 160, 4 * 320 + 4 * 320},  // T for S
      {"gradients", 4 * 320 + 4 * 160, 4 * 160 + 4 * 160},  // S for T
      {"optimizer_state", 8 * 160, 8 * 320},
  };
  for (const auto& [category, right, wrong] : kTable) {
    std::vector<Trace> traces = TracesOf(spec);
    ASSERT_EQ(traces[0].steps[0].memory_peak_bytes[category], right);
    for (Trace& trace : traces) {
      for (auto& step : trace.steps) step.memory_peak_bytes[category] = wrong;
    }
    EXPECT_EQ(CheckMemory(spec, traces, true).outcome, CheckOutcome::kFail) << category << " " << wrong;
  }
}

TEST(CheckMemory, WithoutPeaksFailsOnlyAnEngineThatPromisedThem) {
  std::vector<Trace> traces = TracesOf(Tight());
  for (Trace& trace : traces) {
    for (auto& step : trace.steps) step.memory_peak_bytes.clear();
  }
  EXPECT_EQ(CheckMemory(Tight(), traces, true).outcome, CheckOutcome::kFail);
  EXPECT_EQ(CheckMemory(Tight(), traces, false).outcome, CheckOutcome::kNotApplicable);
  EXPECT_EQ(CheckMemory(Tight(), traces, false).compared, 0);
}

TEST(CheckMemory, JudgesPeaksThatAreReportedUnasked) {
  std::vector<Trace> traces = TracesOf(Tight());
  EXPECT_EQ(CheckMemory(Tight(), traces, false).outcome, CheckOutcome::kPass);
  for (size_t step = 0; step + 1 < traces[0].steps.size(); ++step) traces[0].steps[step].memory_peak_bytes.clear();
  traces[0].steps.back().memory_peak_bytes["weights"] -= 4;
  EXPECT_EQ(CheckMemory(Tight(), traces, false).outcome, CheckOutcome::kFail);
}

TEST(CheckMemory, IsVacuousWhereNothingWasTraced) {
  std::vector<Trace> traces = TracesOf(Tight());
  for (Trace& trace : traces) trace.steps.clear();
  for (bool required : {false, true}) {
    EXPECT_EQ(CheckMemory(Tight(), traces, required).outcome, CheckOutcome::kVacuous);
    EXPECT_EQ(CheckMemory(Tight(), {}, required).outcome, CheckOutcome::kVacuous);
  }
}

// A frozen embed of 64 padded elements beside 512 trained ones, on two ranks: what shows that it is not frozen.
TEST(CheckMemory, FailsStateAndGradientsOfFrozenParameters) {
  contract::Case spec = ExampleGpt2(2, 1);
  spec.model.gpt2().frozen = {"embed.weight"};
  const struct {
    const char* category;
    int64_t right, wrong;
  } kTable[] = {
      {"optimizer_state", 12 * 256, 12 * 256 + 4 * 64},  // a master copy, which no update reads
      {"optimizer_state", 12 * 256, 12 * 288},           // in the buckets like any other
      {"gradients", 4 * (512 + 256), 4 * (576 + 288)},
      {"weights", 4 * (512 + 64), 4 * (512 + 32)},  // sharded
      {"weights", 4 * (512 + 64), 4 * 512},         // forgotten in the books
      {"weights", 4 * (512 + 64), 4 * (512 + 44)},  // without its padding
  };
  for (const auto& [category, right, wrong] : kTable) {
    std::vector<Trace> traces = TracesOf(spec);
    ASSERT_EQ(CheckMemory(spec, traces, true).outcome, CheckOutcome::kPass);
    ASSERT_EQ(traces[1].steps[0].memory_peak_bytes[category], right);
    traces[1].steps[0].memory_peak_bytes[category] = wrong;
    EXPECT_EQ(CheckMemory(spec, traces, true).outcome, CheckOutcome::kFail) << category << " " << wrong;
  }
}

}  // namespace
}  // namespace plumbline::conformance
