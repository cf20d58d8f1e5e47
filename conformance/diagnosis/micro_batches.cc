// SPDX-License-Identifier: Apache-2.0
#include "conformance/diagnosis/micro_batches.h"

#include <algorithm>

namespace plumbline::conformance {
namespace {

int64_t Count(const contract::Batches& batches, int64_t begin, int64_t end) {
  return std::count_if(batches.loss_weights.begin() + begin, batches.loss_weights.begin() + end,
                       [](int32_t weight) { return weight != 0; });
}

}  // namespace

int64_t WeightedTokens(const contract::Batches& batches, int64_t step, int64_t first, int64_t last) {
  return Count(batches, batches.Index(step, first, 0), batches.Index(step, last, 0));
}

double ShareFactor(const contract::Batches& batches, int64_t step, int64_t first, int64_t last) {
  double part = 0;
  double all = 0;
  for (int64_t sample = 0; sample < batches.batch; ++sample) {
    for (int64_t position = 0; position < batches.positions; ++position) {
      const double weight = batches.loss_weights[static_cast<size_t>(batches.Index(step, sample, position))];
      all += weight;
      if (sample >= first && sample < last) part += weight;
    }
  }
  return all > 0 ? part / all : 0;
}

contract::Batches OnlySamples(const contract::Batches& batches, int64_t step, int64_t first, int64_t last,
                              bool is_exact) {
  const int64_t all = WeightedTokens(batches, step, 0, batches.batch);
  const int64_t kept = WeightedTokens(batches, step, first, last);
  contract::Batches only = batches;
  for (int64_t sample = 0; sample < batches.batch; ++sample) {
    for (int64_t position = 0; position < batches.positions; ++position) {
      int32_t& weight = only.loss_weights[static_cast<size_t>(batches.Index(step, sample, position))];
      if (sample < first || sample >= last) {
        weight = 0;
      } else if (is_exact) {
        weight = static_cast<int32_t>(weight / all * kept);  // a multiple of `all`
      }
    }
  }
  return only;
}

contract::Batches MovedLabels(const contract::Batches& batches, int64_t step, int64_t by) {
  contract::Batches moved = batches;
  for (int64_t sample = 0; sample < batches.batch; ++sample) {
    const int64_t source = ((sample + by) % batches.batch + batches.batch) % batches.batch;
    std::copy_n(batches.labels.begin() + batches.Index(step, source, 0), batches.positions,
                moved.labels.begin() + batches.Index(step, sample, 0));
  }
  return moved;
}

contract::Batches WithStepOf(const contract::Batches& batches, int64_t step, int64_t other) {
  contract::Batches changed = batches;
  for (int64_t sample = 0; sample < batches.batch; ++sample) {
    contract::CopySample(batches, {other, sample}, changed, {step, sample});
  }
  return changed;
}

}  // namespace plumbline::conformance
