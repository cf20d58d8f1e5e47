// SPDX-License-Identifier: Apache-2.0
// See length_cut.h.
#include "optimized/model/length_cut.h"

#include <algorithm>
#include <cstddef>

#include "conformance/contract/error.h"

namespace plumbline::optimized {

MicroBatch LengthCut::Cut(const MicroBatch& whole) {
  const auto elems = static_cast<size_t>(samples_ * positions_);
  contract::Check(whole.tokens.size() == elems && whole.labels.size() == elems && whole.loss_weights.size() == elems,
                  "a micro-batch has all positions of its samples");
  longest_ = positions_;
  if (whole.lengths.empty()) return whole;
  contract::Check(whole.lengths.size() == static_cast<size_t>(samples_), "a micro-batch has a length for each sample");
  const auto [shortest, longest] = std::ranges::minmax(whole.lengths);
  contract::Check(shortest >= 1 && longest <= positions_, "a sample has between one token and all positions");
  longest_ = longest;
  for (auto* values : {&tokens_, &labels_, &loss_weights_}) values->clear();
  for (int64_t sample = 0; sample < samples_; ++sample) CutSample(whole, sample);
  MicroBatch cut = whole;
  cut.tokens = tokens_;
  cut.labels = labels_;
  cut.loss_weights = loss_weights_;
  return cut;
}

void LengthCut::CutSample(const MicroBatch& whole, int64_t sample) {
  const int64_t begin = sample * positions_;
  const int64_t length = whole.lengths[sample];
  const auto append = [&](std::vector<int32_t>& target, std::span<const int32_t> from, int32_t padding) {
    const std::span<const int32_t> own = from.subspan(begin, length);
    target.insert(target.end(), own.begin(), own.end());
    target.insert(target.end(), longest_ - length, padding);
  };
  append(tokens_, whole.tokens, whole.tokens[begin]);
  append(labels_, whole.labels, 0);
  append(loss_weights_, whole.loss_weights, 0);
}

}  // namespace plumbline::optimized
