// SPDX-License-Identifier: Apache-2.0
// The hypotheses about what an engine did wrong, one declaration each and one table of all. Each is a pure function
// from what is known of a tensor to what the tensor would hold if the hypothesis were true; it may make several
// predictions (one per rank that could be missing, say), or none where it does not apply. Which fits is ranking.h's
// business. The kinds of mistake are those that engines in the field have shipped.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/diagnosis/evidence.h"

namespace plumbline::conformance {

struct Prediction {
  std::string what;  // which of the hypothesis's variants: "rank 3", "1/4"; may be empty
  Values values;
  int num_fitted = 0;  // numbers that were taken from the candidate
};

using Predictions = std::vector<Prediction>;

struct Hypothesis {
  // kGradient predicts a gradient: what is found, or what the optimizer used. kContent permutes or loses elements of
  // whatever tensor it is. kUpdate predicts what an update leaves. kCandidate looks at the candidate alone.
  enum class Subject { kGradient, kContent, kUpdate, kCandidate };
  std::string_view name;
  std::string_view says;
  Subject subject;
  Predictions (*predict)(const Evidence& evidence);
};

// In the order in which equal fits are listed: the more special one first.
std::span<const Hypothesis> Hypotheses();

// gradient_hypotheses.cc. Predictions of the gradient.
Predictions FactorOfRanks(const Evidence& evidence);         // 1/R, R: reduced twice, averaged where a sum is due
Predictions FactorOfAccumulation(const Evidence& evidence);  // 1/A, A
Predictions FactorOfBoth(const Evidence& evidence);          // 1/(RA), RA
Predictions SignFlipped(const Evidence& evidence);
Predictions MissingReduction(const Evidence& evidence);
Predictions DroppedMicroBatch(const Evidence& evidence);
Predictions RepeatedMicroBatch(const Evidence& evidence);
Predictions MissingRank(const Evidence& evidence);
Predictions RepeatedRank(const Evidence& evidence);  // also in the place of another one
Predictions MeanOfMeans(const Evidence& evidence);
Predictions LowPrecision(const Evidence& evidence);
Predictions NeighbourData(const Evidence& evidence);  // evidence.changed
Predictions StaleGradient(const Evidence& evidence);  // evidence.changed

// content_hypotheses.cc. Predictions of whatever is at hand.
Predictions ShiftedShard(const Evidence& evidence);
Predictions Transposed(const Evidence& evidence);
Predictions ZeroedRegion(const Evidence& evidence);
Predictions StaleRegion(const Evidence& evidence);
Predictions NotFinite(const Evidence& evidence);
Predictions OtherFactor(const Evidence& evidence);

// update_hypotheses.cc. Predictions of evidence.kind.
Predictions NotUpdated(const Evidence& evidence);
Predictions LateWeight(const Evidence& evidence);
Predictions StepCounter(const Evidence& evidence);
Predictions BiasCorrection(const Evidence& evidence);
Predictions ClippingMissing(const Evidence& evidence);
Predictions ClippingTwice(const Evidence& evidence);
Predictions ClippingInverted(const Evidence& evidence);
Predictions ClippingNorm(const Evidence& evidence);  // by a part's norm, or without epsilon
Predictions RateOfOtherGroup(const Evidence& evidence);
Predictions RateOfOtherStep(const Evidence& evidence);
Predictions DecayMissing(const Evidence& evidence);
Predictions DecayForm(const Evidence& evidence);
Predictions DecayOfOtherGroup(const Evidence& evidence);
Predictions SwappedParameters(const Evidence& evidence);
Predictions EpsilonPlace(const Evidence& evidence);
Predictions MomentumForm(const Evidence& evidence);
Predictions RatioOfNorms(const Evidence& evidence);  // LAMB's
Predictions ExemptClipped(const Evidence& evidence);
Predictions UnitNorm(const Evidence& evidence);  // clipping by units: of other units, or of parts
Predictions LostState(const Evidence& evidence);
Predictions ShiftedState(const Evidence& evidence);  // the state before the update
Predictions LowPrecisionState(const Evidence& evidence);

}  // namespace plumbline::conformance
