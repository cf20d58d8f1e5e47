// SPDX-License-Identifier: Apache-2.0
// The table of hypothesis.h. A new hypothesis is a declaration there, a row here, a name in
// conformance/defects/apply_edits.py, and a test that it is recognised and not claimed elsewhere.
#include "conformance/diagnosis/hypothesis.h"

namespace plumbline::conformance {
namespace {

using Subject = Hypothesis::Subject;

constexpr Hypothesis kHypotheses[] = {
    {"not_finite", "holds NaN or infinities", Subject::kCandidate, NotFinite},
    {"late_weight", "the working weight is that of the update before", Subject::kUpdate, LateWeight},
    {"not_updated", "holds what it held before the step", Subject::kUpdate, NotUpdated},
    {"missing_reduction", "each rank has its own share, not the sum over ranks", Subject::kGradient, MissingReduction},
    {"missing_rank", "a rank's share is missing", Subject::kGradient, MissingRank},
    {"repeated_rank", "a rank's share is counted twice, or in the place of another's", Subject::kGradient,
     RepeatedRank},
    {"dropped_micro_batch", "micro-batches are missing", Subject::kGradient, DroppedMicroBatch},
    {"repeated_micro_batch", "a micro-batch is counted twice, or in the place of another", Subject::kGradient,
     RepeatedMicroBatch},
    {"factor_ranks", "multiplied or divided by the number of ranks", Subject::kGradient, FactorOfRanks},
    {"factor_accumulation", "multiplied or divided by the number of accumulation steps", Subject::kGradient,
     FactorOfAccumulation},
    {"factor_both", "multiplied or divided by ranks times accumulation steps", Subject::kGradient, FactorOfBoth},
    {"sign_flipped", "the sign is flipped", Subject::kGradient, SignFlipped},
    {"mean_of_means", "a mean of means over parts with unequal token counts", Subject::kGradient, MeanOfMeans},
    {"neighbour_data", "made from tokens or labels of another part of the batch", Subject::kGradient, NeighbourData},
    {"stale_gradient", "the gradient at the weights of the step before", Subject::kGradient, StaleGradient},
    {"step_counter", "the number of the update is another", Subject::kUpdate, StepCounter},
    {"bias_correction", "a moment is not corrected for its start at zero", Subject::kUpdate, BiasCorrection},
    {"clipping_missing", "the gradient is not clipped", Subject::kUpdate, ClippingMissing},
    {"clipping_twice", "the gradient is clipped twice", Subject::kUpdate, ClippingTwice},
    {"clipping_inverted", "the larger of one and the clip factor is used", Subject::kUpdate, ClippingInverted},
    {"clipping_norm", "the gradient is clipped by another norm", Subject::kUpdate, ClippingNorm},
    {"other_step_rate", "the learning rate of another step", Subject::kUpdate, RateOfOtherStep},
    {"other_group_rate", "the learning rate of another group", Subject::kUpdate, RateOfOtherGroup},
    {"decay_missing", "weight decay is missing", Subject::kUpdate, DecayMissing},
    {"decay_form", "weight decay is added to the gradient where it is taken from the weights, or the other way round",
     Subject::kUpdate, DecayForm},
    {"other_group_decay", "the weight decay of another group", Subject::kUpdate, DecayOfOtherGroup},
    {"swapped_parameters", "two parameters of the optimizer are swapped", Subject::kUpdate, SwappedParameters},
    {"epsilon_place", "the epsilon of AdamW is at another place", Subject::kUpdate, EpsilonPlace},
    {"momentum_form", "the step is along another form of momentum", Subject::kUpdate, MomentumForm},
    {"ratio_of_norms", "LAMB's ratio of norms is another one", Subject::kUpdate, RatioOfNorms},
    {"exempt_clipped", "a group that is exempt from clipping is clipped", Subject::kUpdate, ExemptClipped},
    {"unit_norm", "clipping by units takes other norms", Subject::kUpdate, UnitNorm},
    {"lost_state", "the optimizer's state was lost before the step", Subject::kUpdate, LostState},
    {"shifted_state", "the optimizer's state is that of other elements", Subject::kUpdate, ShiftedState},
    {"transposed", "the matrix is stored transposed", Subject::kContent, Transposed},
    {"shifted_shard", "the content is displaced, or another shard's", Subject::kContent, ShiftedShard},
    {"zeroed_region", "a region is zero", Subject::kContent, ZeroedRegion},
    {"stale_region", "a region holds what it held before the step", Subject::kContent, StaleRegion},
    {"low_precision", "rounded to bf16, or summed in it", Subject::kGradient, LowPrecision},
    {"low_precision_state", "state is kept in bf16", Subject::kUpdate, LowPrecisionState},
    {"other_factor", "multiplied by a constant", Subject::kContent, OtherFactor},
};

}  // namespace

std::span<const Hypothesis> Hypotheses() { return kHypotheses; }

}  // namespace plumbline::conformance
