// SPDX-License-Identifier: Apache-2.0
// Cases that need no truth: an engine runs a case and a variant of it whose result follows from the first (Chen,
// Cheung, Yiu, "Metamorphic testing", 1998). Which relation is tried on which layouts; what a variant is made of is in
// runner/metamorphic_runs.h, and how it is judged in docs/tolerance.md. `resumed` is no relation here: every case of an
// engine that saves has it already.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "conformance/cases/problem.h"
#include "conformance/cases/tier.h"

namespace plumbline::conformance {

enum class MetamorphicRelation {
  kPermuted,       // the samples of each rank in another order, so that its micro-batches hold others
  kRelabelled,     // each rank has the samples of another one
  kSplit,          // the weighted tokens in two parts, whose gradients make up that of the whole
  kScaled,         // weights times powers of two that cancel: gradients are the inverse powers of two of the whole's
  kAccumulated,    // twice the accumulation steps with half the micro-batch
  kShiftedLogits,  // one number is added to all logits of a token, by the weights of an untied head
  kShiftedScores,  // one number is added to all scores of a query, by the bias of the keys
  kPadded,         // other tokens and labels behind the ends of samples
};
inline constexpr MetamorphicRelation kMetamorphicRelations[] = {
    MetamorphicRelation::kPermuted,      MetamorphicRelation::kRelabelled,  MetamorphicRelation::kSplit,
    MetamorphicRelation::kScaled,        MetamorphicRelation::kAccumulated, MetamorphicRelation::kShiftedLogits,
    MetamorphicRelation::kShiftedScores, MetamorphicRelation::kPadded};

std::string_view Name(MetamorphicRelation relation);

// Whether the relation can hold for this problem in a layout like `config`, which has several ranks and micro-batches:
// not where samples change places while dropout masks, functions of a sample's place, do not follow; not where bounds
// of folds would have to be scaled as well; scores move where keys have a bias.
bool HoldsFor(MetamorphicRelation relation, const contract::ModelSpec& model, const contract::RunConfig& config);

struct MetamorphicCase {
  MetamorphicRelation relation = MetamorphicRelation::kPermuted;
  CaseSpec spec;  // id FAMILY/PROBLEM/metamorphic-RELATION-LAYOUT; also the axis "relation"
};

// Layouts are those of the list that have several ranks and several micro-batches, in real families stored in fp32. Of
// each problem and relation so many as the tier wants, the stages in turn.
std::vector<MetamorphicCase> MetamorphicCases(const CaseList& list, Tier tier);

// The relations of softmaxes and of padding, each on the first of these layouts of the list for which it can hold.
std::vector<MetamorphicCase> DefectRelationCases(const CaseList& list, const std::vector<CaseSpec>& layouts);

// Steps of the runs: single ones where the runs part after the first.
int64_t MetamorphicSteps(MetamorphicRelation relation, const Problem& problem);

}  // namespace plumbline::conformance
