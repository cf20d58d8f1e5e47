// SPDX-License-Identifier: Apache-2.0
// For every metamorphic case of the smoke list: the variants are what the relation says, and differ from the whole.
#include "conformance/runner/metamorphic_runs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include "conformance/contract/batch_source.h"
#include "conformance/runner/plan.h"

namespace plumbline::conformance {
namespace {

using contract::Batches;
using contract::Case;

contract::TokenSource Source() {
  contract::TokenSource source{{}, true};
  for (int32_t i = 0; i < 997; ++i) source.tokens.push_back(i * i % 251);
  return source;
}

Batches BatchesOf(const Case& spec) {
  return contract::MakeBatches(Source(), spec.model, {spec.seed, 0, spec.steps, spec.config.train_batch_size});
}

struct Entry {
  Case whole;
  MetamorphicRelation relation;
  Batches batches;
  MetamorphicRuns made;
};

std::vector<Entry> Entries(MetamorphicRelation relation) {
  std::vector<Entry> entries;
  for (const PlannedCase& planned : MakePlan(PlanOptions{}).cases) {
    if (planned.relation != relation) continue;
    const Batches batches = BatchesOf(planned.spec);
    entries.push_back({planned.spec, relation, batches, MakeMetamorphicRuns(relation, planned.spec, batches)});
  }
  return entries;
}

TEST(MetamorphicRuns, BeginWithTheWholeChangeSomethingAndHaveIdsOfTheirOwn) {
  for (MetamorphicRelation relation : kMetamorphicRelations) {
    const std::vector<Entry> entries = Entries(relation);
    EXPECT_FALSE(entries.empty()) << Name(relation);
    for (const Entry& entry : entries) {
      SCOPED_TRACE(entry.whole.id);
      EXPECT_EQ(entry.made.nothing_changed, "");
      ASSERT_EQ(entry.made.runs.size(), relation == MetamorphicRelation::kSplit ? 3u : 2u);
      EXPECT_EQ(entry.made.runs.front().spec.id, entry.whole.id);
      EXPECT_FALSE(entry.made.runs.front().batches);
      std::set<std::string> ids;
      for (const TaskRun& run : entry.made.runs) {
        EXPECT_TRUE(ids.insert(run.spec.id).second);
        EXPECT_TRUE(run.spec.id.starts_with(entry.whole.id)) << "folders of failures are named after it";
        EXPECT_EQ(run.spec.steps, entry.whole.steps);
        EXPECT_EQ(run.spec.dump_steps.size(), entry.whole.model.is_exact() ? 0u : 1u);
        EXPECT_FALSE(run.resumes);
      }
    }
  }
}

TEST(PermutedAndRelabelled, ChangeTheBatchesAndNothingElse) {
  for (MetamorphicRelation relation : {MetamorphicRelation::kPermuted, MetamorphicRelation::kRelabelled}) {
    for (const Entry& entry : Entries(relation)) {
      Case variant = entry.made.runs[1].spec;
      variant.id = entry.made.runs[0].spec.id;
      EXPECT_EQ(variant, entry.made.runs[0].spec);
      EXPECT_FALSE(entry.made.runs[1].start);
      EXPECT_NE(entry.made.runs[1].batches->tokens, entry.batches.tokens);
      EXPECT_EQ(entry.made.runs[1].batches->tokens.size(), entry.batches.tokens.size());
    }
  }
}

TEST(Accumulated, HalvesTheMicroBatchOfTheSameBatch) {
  for (const Entry& entry : Entries(MetamorphicRelation::kAccumulated)) {
    const contract::RunConfig &whole = entry.whole.config, &variant = entry.made.runs[1].spec.config;
    EXPECT_EQ(2 * variant.micro_batch_size, whole.micro_batch_size);
    EXPECT_EQ(variant.accumulation_steps, 2 * whole.accumulation_steps);
    EXPECT_EQ(variant.train_batch_size, whole.train_batch_size);
    EXPECT_FALSE(entry.made.runs[1].batches);
  }
}

TEST(Accumulated, SaysThatNothingChangedWhereTheMicroBatchIsOdd) {
  Case whole;
  whole.model = contract::ExactSpec{};
  for (int64_t micro_batch : {1, 3, 7}) {
    whole.config.micro_batch_size = micro_batch;
    EXPECT_NE(MakeMetamorphicRuns(MetamorphicRelation::kAccumulated, whole, {}).nothing_changed, "");
  }
}

TEST(PermutedRelabelledAndSplit, SayThatNothingChangedWithOneRankMicroBatchAndSample) {
  Case whole = Entries(MetamorphicRelation::kPermuted).front().whole;
  whole.config.data_degree = whole.config.accumulation_steps = 1;
  whole.config.micro_batch_size = whole.config.train_batch_size;
  for (MetamorphicRelation relation : {MetamorphicRelation::kPermuted, MetamorphicRelation::kRelabelled}) {
    EXPECT_NE(MakeMetamorphicRuns(relation, whole, BatchesOf(whole)).nothing_changed, "") << Name(relation);
  }
  whole.steps = 1;
  Batches one = BatchesOf(whole);
  std::fill(one.loss_weights.begin() + 1, one.loss_weights.end(), 0);
  EXPECT_NE(MakeMetamorphicRuns(MetamorphicRelation::kSplit, whole, one).nothing_changed, "");
}

// That the states are what the relation says is shifted_weights_test's.
TEST(Shifted, BeginsBothRunsAtStatesOfTheirOwnAndKnowsTheShift) {
  for (MetamorphicRelation relation : {MetamorphicRelation::kShiftedLogits, MetamorphicRelation::kShiftedScores}) {
    for (const Entry& entry : Entries(relation)) {
      const auto initial = contract::MakeInitialRealState(entry.whole.model, entry.whole.config, entry.whole.seed);
      const auto differs = [](const auto& one, const auto& other) {
        int64_t tensors = 0;
        for (size_t i = 0; i < one.size(); ++i) tensors += one[i].master != other[i].master;
        return tensors;
      };
      ASSERT_TRUE(entry.made.runs[0].start && entry.made.runs[1].start) << entry.whole.id;
      const auto &whole = entry.made.runs[0].start->state, &shifted = entry.made.runs[1].start->state;
      const int64_t changed = relation == MetamorphicRelation::kShiftedLogits ? 1 : entry.whole.model.real().layers;
      EXPECT_EQ(differs(initial, whole), changed) << entry.whole.id;
      EXPECT_EQ(differs(whole, shifted), changed) << entry.whole.id;
      EXPECT_GT(entry.made.shift.largest, 100) << entry.whole.id;
      EXPECT_EQ(entry.made.shift.least_loss > 0, relation == MetamorphicRelation::kShiftedLogits) << entry.whole.id;
      Case variant = entry.made.runs[1].spec;
      variant.id = entry.made.runs[0].spec.id;
      EXPECT_EQ(variant, entry.made.runs[0].spec);
      EXPECT_FALSE(entry.made.runs[1].batches);
    }
  }
}

// The exponent of a column of a parameter.
int ExponentOf(const Entry& entry, const std::string& name, int64_t column = 0) {
  const auto parameters = contract::Parameters(entry.whole.model);
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].name == name) return entry.made.exponents[i][static_cast<size_t>(column)];
  }
  ADD_FAILURE() << name;
  return 0;
}

// Along every path of the model the powers of two cancel: products sum their exponents.
TEST(RescaledWeights, CancelInEveryProductOfGpt2) {
  for (const Entry& entry : Entries(MetamorphicRelation::kScaled)) {
    if (entry.whole.model.kind() != contract::Family::kGpt2) continue;
    const contract::Gpt2Spec& model = entry.whole.model.gpt2();
    const auto of = [&](const std::string& name, int64_t column = 0) { return ExponentOf(entry, name, column); };
    const int stream = of("embed.weight");
    EXPECT_NE(stream, 0);
    EXPECT_EQ(of("pos.weight"), stream);
    EXPECT_EQ(entry.made.runs[1].spec.model.gpt2().norm_epsilon, std::ldexp(model.norm_epsilon, 2 * stream));
    for (int64_t l = 0; l < model.layers; ++l) {
      const std::string layer = "layers." + std::to_string(l) + ".";
      for (int64_t column : {int64_t{0}, model.width, 2 * model.width, 3 * model.width - 1}) {
        EXPECT_EQ(of(layer + "norm1.weight") + of(layer + "attn.qkv.weight", column),
                  of(layer + "attn.qkv.bias", column));
      }
      EXPECT_EQ(of(layer + "attn.qkv.bias", 0), -of(layer + "attn.qkv.bias", model.width)) << "scores stay";
      EXPECT_EQ(of(layer + "attn.qkv.bias", 2 * model.width) + of(layer + "attn.out.weight"), stream);
      EXPECT_EQ(of(layer + "attn.out.bias"), stream);
      EXPECT_EQ(of(layer + "norm1.bias"), of(layer + "norm1.weight"));
      EXPECT_EQ(of(layer + "norm2.bias"), of(layer + "norm2.weight"));
      EXPECT_EQ(of(layer + "norm2.weight") + of(layer + "mlp.up.weight"), 0);
      EXPECT_EQ(of(layer + "mlp.up.bias"), 0) << "GELU is not linear";
      EXPECT_EQ(of(layer + "mlp.down.weight"), stream);
      EXPECT_EQ(of(layer + "mlp.down.bias"), stream);
    }
    EXPECT_EQ(of("norm.weight") + of(model.tied_head ? "embed.weight" : "head.weight"), 0) << "logits stay";
    EXPECT_EQ(of("norm.bias"), of("norm.weight"));
  }
}

TEST(RescaledWeights, CancelInEveryProductOfLlama) {
  int64_t num_seen = 0;
  for (const Entry& entry : Entries(MetamorphicRelation::kScaled)) {
    if (entry.whole.model.kind() != contract::Family::kLlama) continue;
    ++num_seen;
    const contract::LlamaSpec& model = entry.whole.model.llama();
    const auto of = [&](const std::string& name) { return ExponentOf(entry, name); };
    const int stream = of("embed.weight");
    EXPECT_NE(stream, 0);
    EXPECT_EQ(entry.made.runs[1].spec.model.llama().norm_epsilon, std::ldexp(model.norm_epsilon, 2 * stream));
    for (int64_t l = 0; l < model.layers; ++l) {
      const std::string layer = "layers." + std::to_string(l) + ".";
      const int attention = of(layer + "norm1.weight"), mlp = of(layer + "norm2.weight");
      const int query = attention + of(layer + "attn.q.weight"), key = attention + of(layer + "attn.k.weight");
      const int value = attention + of(layer + "attn.v.weight");
      EXPECT_EQ(query + key, 0) << "scores stay";
      EXPECT_NE(query, 0);
      EXPECT_EQ(value + of(layer + "attn.out.weight"), stream);
      EXPECT_EQ(mlp + of(layer + "mlp.gate.weight"), 0) << "silu is not linear";
      EXPECT_NE(mlp + of(layer + "mlp.up.weight"), 0);
      EXPECT_EQ(mlp + of(layer + "mlp.up.weight") + of(layer + "mlp.down.weight"), stream);
    }
    EXPECT_EQ(of("norm.weight") + of("head.weight"), 0) << "logits stay";
  }
  EXPECT_GT(num_seen, 0);
}

TEST(Padded, ChangesEveryTokenAndLabelBehindTheEndsAndNothingElse) {
  for (const Entry& entry : Entries(MetamorphicRelation::kPadded)) {
    const Batches &whole = entry.batches, &padded = *entry.made.runs[1].batches;
    EXPECT_EQ(padded.lengths, whole.lengths);
    EXPECT_EQ(padded.loss_weights, whole.loss_weights);
    int64_t changed = 0;
    for (int64_t sample = 0; sample < whole.batch; ++sample) {
      for (int64_t t = 0; t < whole.positions; ++t) {
        const auto at = static_cast<size_t>(whole.Index(0, sample, t));
        const bool is_padding = t >= whole.Length(0, sample);
        EXPECT_EQ(padded.tokens[at] != whole.tokens[at], is_padding) << sample << " " << t;
        EXPECT_EQ(padded.labels[at] != whole.labels[at], is_padding) << sample << " " << t;
        EXPECT_TRUE(padded.tokens[at] >= 0 && padded.tokens[at] < entry.whole.model.vocab());
        changed += is_padding;
      }
    }
    EXPECT_GT(changed, 0);
  }
}

TEST(Padded, SaysThatNothingChangedWithoutPadding) {
  Case whole = Entries(MetamorphicRelation::kPadded).front().whole;
  whole.model.llama().unequal_lengths = false;
  EXPECT_NE(MakeMetamorphicRuns(MetamorphicRelation::kPadded, whole, BatchesOf(whole)).nothing_changed, "");
}

TEST(RescaledWeights, MultipliesEachElementOfTheInitialState) {
  for (const Entry& entry : Entries(MetamorphicRelation::kScaled)) {
    const auto before = contract::MakeInitialRealState(entry.whole.model, entry.whole.config, entry.whole.seed);
    const auto& after = entry.made.runs[1].start->state;
    ASSERT_EQ(after.size(), before.size());
    int64_t changed = 0;
    for (size_t tensor = 0; tensor < before.size(); ++tensor) {
      const std::vector<int>& columns = entry.made.exponents[tensor];
      ASSERT_EQ(after[tensor].master.size(), before[tensor].master.size());
      for (size_t i = 0; i < before[tensor].master.size(); ++i) {
        EXPECT_EQ(after[tensor].master[i], std::ldexp(before[tensor].master[i], columns[i % columns.size()]));
        changed += after[tensor].master[i] != before[tensor].master[i];
      }
      EXPECT_EQ(after[tensor].moment, before[tensor].moment);
    }
    EXPECT_GT(changed, 1000);
  }
}

}  // namespace
}  // namespace plumbline::conformance
