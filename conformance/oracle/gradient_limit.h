// SPDX-License-Identifier: Apache-2.0
// How large a candidate's errors in the regions of a gradient may be, from the errors that two plain engines make on
// the same steps. Formulas, assumptions and what they detect: docs/tolerance.md, "Gradients". Pure numbers; which
// tensor a region is, and what the candidate did, is not known here.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "conformance/contract/dtype.h"
#include "conformance/oracle/region_error.h"

namespace plumbline::conformance {

// Chance of a false alarm that each single comparison is allowed, under the assumptions of docs/tolerance.md. A run of
// verify over twenty seeds makes about a million comparisons.
inline constexpr double kFalseAlarmRate = 1e-9;

// How unevenly a region's error is spread over its elements and over the steps, from the plain engines' errors in units
// of each step's scale: number times sum of fourth powers / (sum of squares)^2, 3 for independent normal errors of one
// size.
class ErrorEvenness {
 public:
  void Add(double error, double other_error) {
    const double square = (error * error + other_error * other_error) / 2;
    squares_ += square;
    fourths_ += square * square;
    ++count_;
  }
  int64_t count() const { return count_; }
  // 0 where there is no error at all.
  double kurtosis() const { return fourths_ > 0 ? static_cast<double>(count_) * (fourths_ / squares_) / squares_ : 0; }

 private:
  double squares_ = 0;
  double fourths_ = 0;
  int64_t count_ = 0;
};

// A region over the steps of a yardstick; the three vectors are parallel, one entry a step.
struct RegionHistory {
  bool is_vector = false;
  bool is_whole = false;  // the whole gradient as one region
  int64_t numel = 0;
  ErrorEvenness evenness;
  std::vector<RegionTruth> truth;
  std::vector<RegionError> plain;
  std::vector<RegionError> other_plain;

  bool LiveInEveryStep() const;
};

// Limits of: the root mean square over steps of norm, the absolute mean over (live) steps of slope, and the largest
// tail.
struct RegionLimit {
  double norm = 0;
  double slope = 0;
  double tail = 0;
  double plain_norm = 0;  // that of the plain engine with the larger errors, for the report
};

// The largest ratio of the errors of two legal engines of one precision, in root mean square. fp32: sums of at most
// `longest_sum` terms, one after the other without fused multiply-add against pairwise. bf16: four times as many
// roundings to storage.
double EngineSpread(contract::DType storage, int64_t longest_sum);

// Limits of each region, in their order. At least two steps.
std::vector<RegionLimit> RegionLimits(std::span<const RegionHistory> regions, contract::DType storage,
                                      double engine_spread);

}  // namespace plumbline::conformance
