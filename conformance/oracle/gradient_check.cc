// SPDX-License-Identifier: Apache-2.0
// CheckGradients: classes of values first (NaN, Inf, exact zero), then norm, slope and tail of each region against the
// limits of gradient_limit.h. The numbers of a region are pooled over the steps; what is named is the step in which the
// region is worst.
#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "conformance/oracle/gradient_limit.h"
#include "conformance/oracle/gradient_region.h"
#include "conformance/oracle/number_text.h"
#include "conformance/oracle/real_check.h"
#include "conformance/oracle/region_error.h"
#include "conformance/oracle/storage_rounding.h"

namespace plumbline::conformance {
namespace {

using contract::TensorKind;
using reports::CheckOutcome;
using Sights = std::span<const StepSight>;

std::string Text(double value) { return ShortText(value, 3); }

const std::vector<double>& Gradient(const StepSight& sight, const GradientRegion& region) {
  return sight.of(TensorKind::kGradient)[region.tensor];
}

std::string NameOf(const contract::ModelSpec& model, const GradientRegion& region) {
  return contract::Parameters(model)[region.tensor].name;
}

// What keeps the sights from being compared at all, or nothing.
std::string ShapeProblem(const std::vector<GradientRegion>& regions, const Sights& truth, const Sights& other,
                         const char* who) {
  if (other.size() != truth.size()) {
    return std::string(who) + " has " + std::to_string(other.size()) + " steps, the truth " +
           std::to_string(truth.size());
  }
  for (size_t s = 0; s < truth.size(); ++s) {
    if (other[s].step != truth[s].step) {
      return std::string(who) + " is of step " + std::to_string(other[s].step) + ", the truth of step " +
             std::to_string(truth[s].step);
    }
    const auto& tensors = other[s].of(TensorKind::kGradient);
    for (const GradientRegion& region : regions) {
      const auto numel = static_cast<size_t>(region.rows * region.cols);
      if (region.tensor < tensors.size() && tensors[region.tensor].size() == numel) continue;
      return std::string(who) + " has no whole gradient of " + region.name + " in step " +
             std::to_string(other[s].step);
    }
  }
  return "";
}

bool IsFinite(const std::vector<GradientRegion>& regions, const StepSight& sight) {
  for (const GradientRegion& region : regions) {
    const std::vector<double>& values = Gradient(sight, region);
    if (!std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); })) return false;
  }
  return true;
}

// The truth's regions in one step. The norm of the whole is taken in units of its largest element, so that no square
// overflows or underflows: all regions would be null.
std::vector<RegionTruth> MeasureTruths(const std::vector<GradientRegion>& regions, const StepSight& truth) {
  const auto for_each_value = [&](auto visit) {
    for (const GradientRegion& region : regions) {
      const std::vector<double>& values = Gradient(truth, region);
      ForEachElement(region, [&](size_t i) { visit(values[i]); });
    }
  };
  double largest = 0;
  for_each_value([&](double value) { largest = std::max(largest, std::abs(value)); });
  double squares = 0;
  for_each_value([&](double value) { squares += largest > 0 ? (value / largest) * (value / largest) : 0; });
  std::vector<RegionTruth> measured;
  for (const GradientRegion& region : regions) {
    measured.push_back(MeasureTruth(region, Gradient(truth, region), largest * std::sqrt(squares)));
  }
  return measured;
}

using Truths = std::vector<std::vector<RegionTruth>>;  // [step][region]

// Whether a zero of the region is one by chance: the truth is rounding noise (null), and a plain engine makes other
// noise. Where none does, as of an unused parameter, which is null too, zeros are sums without terms.
bool IsNoise(const GradientRegion& region, const RegionTruth& measured, const Yardstick& yardstick, size_t step) {
  if (!measured.null) return false;
  const std::vector<double>& truth = Gradient(yardstick.truth[step], region);
  return std::ranges::any_of(std::array{&yardstick.plain[step], &yardstick.other_plain[step]}, [&](const auto* plain) {
    return MeasureError(region, measured, truth, Gradient(*plain, region)).norm > 0;
  });
}

// A value whose class is wrong, as the text of a finding: not finite, or not zero where truth and both plain engines
// are exactly zero (a sum without terms is zero in every order).
std::string WrongClass(const GradientRegion& region, const RegionTruth& measured, const Yardstick& yardstick,
                       size_t step, const StepSight& sight) {
  const std::vector<double>& values = Gradient(sight, region);
  const std::vector<double>& truth = Gradient(yardstick.truth[step], region);
  const std::vector<double>& plain = Gradient(yardstick.plain[step], region);
  const std::vector<double>& other = Gradient(yardstick.other_plain[step], region);
  const bool noise = IsNoise(region, measured, yardstick, step);
  std::string finding;
  ForEachElement(region, [&](size_t i) {
    if (!finding.empty()) return;
    const bool zero = !noise && truth[i] == 0 && plain[i] == 0 && other[i] == 0;
    if (std::isfinite(values[i]) && (!zero || values[i] == 0)) return;
    finding = "element " + std::to_string(i) + " is " + Text(values[i]) + "; the truth is " + Text(truth[i]);
    if (zero) finding += ", and so are both plain engines";
  });
  return finding;
}

std::optional<Divergence> FindWrongClass(const contract::ModelSpec& model, const std::vector<GradientRegion>& regions,
                                         const Yardstick& yardstick, const Truths& truths, Sights candidate) {
  for (size_t s = 0; s < candidate.size(); ++s) {
    std::optional<Divergence> found;
    for (size_t r = 0; r < regions.size(); ++r) {
      const GradientRegion& region = regions[r];
      const std::string finding = WrongClass(region, truths[s][r], yardstick, s, candidate[s]);
      if (finding.empty()) continue;
      // The last in canonical order is the nearest to the cause: backward comes to it first.
      const int64_t before = found ? found->num_tensors : 0;
      found =
          Divergence{candidate[s].step, "gradient", NameOf(model, region), before + 1, region.name + ": " + finding};
    }
    if (found) return found;
  }
  return std::nullopt;
}

void AddEvenness(const GradientRegion& region, const Yardstick& yardstick, size_t step, double scale,
                 ErrorEvenness& evenness) {
  if (!(scale > 0)) return;
  const std::vector<double>& truth = Gradient(yardstick.truth[step], region);
  const std::vector<double>& plain = Gradient(yardstick.plain[step], region);
  const std::vector<double>& other = Gradient(yardstick.other_plain[step], region);
  ForEachElement(region, [&](size_t i) { evenness.Add((plain[i] - truth[i]) / scale, (other[i] - truth[i]) / scale); });
}

// Histories of all regions, then of the whole gradient as one; errors of the candidate are parallel to them.
struct Measured {
  std::vector<RegionHistory> histories;
  std::vector<std::vector<RegionError>> candidate;  // [region][step]
};

Measured Measure(const std::vector<GradientRegion>& regions, const Yardstick& yardstick, const Truths& truths,
                 Sights candidate) {
  Measured measured;
  measured.histories.resize(regions.size() + 1);
  measured.candidate.resize(regions.size() + 1);
  for (size_t r = 0; r < regions.size(); ++r) {
    measured.histories[r].is_vector = regions[r].is_vector;
    measured.histories[r].numel = regions[r].numel();
    measured.histories.back().numel += regions[r].numel();
  }
  measured.histories.back().is_whole = true;
  for (size_t s = 0; s < candidate.size(); ++s) {
    const std::vector<RegionTruth>& truth = truths[s];
    for (size_t r = 0; r < regions.size(); ++r) measured.histories[r].truth.push_back(truth[r]);
    measured.histories.back().truth.push_back(WholeTruth(truth));
    const auto add = [&](const StepSight& sight, auto errors_of) {
      std::vector<RegionError> errors;
      for (size_t r = 0; r < regions.size(); ++r) {
        errors.push_back(
            MeasureError(regions[r], truth[r], Gradient(yardstick.truth[s], regions[r]), Gradient(sight, regions[r])));
        errors_of(r).push_back(errors.back());
      }
      errors_of(regions.size()).push_back(WholeError(regions, truth, errors));
    };
    add(
        yardstick.plain[s], [&](size_t r) -> auto& { return measured.histories[r].plain; });
    add(
        yardstick.other_plain[s], [&](size_t r) -> auto& { return measured.histories[r].other_plain; });
    add(
        candidate[s], [&](size_t r) -> auto& { return measured.candidate[r]; });
  }
  for (size_t s = 0; s < candidate.size(); ++s) {
    for (size_t r = 0; r < regions.size(); ++r) {
      RegionHistory& whole = measured.histories.back();
      AddEvenness(regions[r], yardstick, s, measured.histories[r].truth[s].scale, measured.histories[r].evenness);
      AddEvenness(regions[r], yardstick, s, whole.truth[s].scale, whole.evenness);
    }
  }
  return measured;
}

// One number of the candidate against its limit.
struct Finding {
  const char* what = "";
  double value = 0;
  double limit = 0;

  bool within() const { return value <= limit; }  // positive form: NaN is not
  double share() const { return limit > 0 ? value / limit : (value > 0 ? HUGE_VAL : 0); }
};

// Squares of the truth's norm, over the steps in which the region has a gradient.
double EnergyOf(const RegionHistory& history) {
  double energy = 0;
  for (const RegionTruth& truth : history.truth) energy += truth.null ? 0 : truth.scale * truth.scale;
  return energy;
}

// Over the steps in which the region is live.
double MeanSlope(const RegionHistory& history, const std::vector<RegionError>& errors) {
  double slope = 0;
  double num_live = 0;
  for (size_t s = 0; s < errors.size(); ++s) {
    if (history.truth[s].null) continue;
    slope += errors[s].slope;
    ++num_live;
  }
  return num_live > 0 ? slope / num_live : 0;
}

std::vector<Finding> FindingsOf(const RegionHistory& history, const std::vector<RegionError>& errors,
                                const RegionLimit& limit) {
  std::vector<double> norms;
  double tail = 0;
  for (const RegionError& error : errors) {
    norms.push_back(error.norm);
    tail = std::max(tail, error.tail);
  }
  const bool live =
      std::any_of(history.truth.begin(), history.truth.end(), [](const RegionTruth& t) { return !t.null; });
  std::vector<Finding> findings;
  if (live) findings.push_back({"slope", std::abs(MeanSlope(history, errors)), limit.slope});
  findings.push_back({"norm", RootMeanSquare(norms), limit.norm});
  if (!history.is_whole) findings.push_back({"tail", tail, limit.tail});
  return findings;
}

// "0.5", "1 + 2.1e-06", "1 - 3e-05", "0".
std::string FactorText(double slope) {
  constexpr double kNoise = 1e-9;  // of the slope of what is zero
  if (std::abs(slope) < 0.01) return (slope < 0 ? "1 - " : "1 + ") + Text(std::abs(slope));
  return std::abs(1 + slope) < kNoise ? "0" : Text(1 + slope);
}

std::string Describe(const std::string& region, const Finding& finding, double mean_slope) {
  return region + ": " + finding.what + " of the error is " + Text(finding.value) + ", limit " + Text(finding.limit) +
         "; the gradient is " + FactorText(mean_slope) + " times the truth on average";
}

size_t WorstStep(const std::vector<RegionError>& errors) {
  const auto worst = std::max_element(errors.begin(), errors.end(),
                                      [](const RegionError& a, const RegionError& b) { return a.norm < b.norm; });
  return static_cast<size_t>(worst - errors.begin());
}

// Compares everything; the divergence names the last failing region in canonical order, of which the first failing
// number in the order slope, norm, tail.
class Comparison {
 public:
  Comparison(const contract::ModelSpec& model, const std::vector<GradientRegion>& regions, Sights candidate,
             const Measured& measured, const std::vector<RegionLimit>& limits)
      : model_(model), regions_(regions), candidate_(candidate), measured_(measured), limits_(limits) {}

  RealResult Run() {
    // The whole gradient is last, and is named only where no region is.
    for (size_t r = 0; r <= regions_.size(); ++r) CompareRegion(r);
    RealResult result;
    result.check = {"gradient", CheckOutcome::kPass, compared_, Summary()};
    result.divergence = divergence_;
    if (divergence_) {
      result.check.outcome = CheckOutcome::kFail;
      result.check.detail = "step " + std::to_string(divergence_->step) + ": gradient of " + divergence_->detail;
      if (divergence_->num_tensors > 1) {
        result.check.detail += "; " + std::to_string(divergence_->num_tensors) +
                               " regions are beyond their limits, farthest the " + farthest_ + ", " +
                               Text(farthest_share_) + " times its limit";
      }
    } else if (IsBlind()) {
      result.check.outcome = CheckOutcome::kVacuous;
      result.check.detail = blind_;
    }
    return result;
  }

 private:
  void CompareRegion(size_t r) {
    const bool whole = r == regions_.size();
    const RegionHistory& history = measured_.histories[r];
    const std::vector<RegionError>& errors = measured_.candidate[r];
    const std::string name = whole ? "all tensors together" : regions_[r].name;
    bool failed = false;
    for (const Finding& finding : FindingsOf(history, errors, limits_[r])) {
      ++compared_;
      if (finding.share() > worst_share_) {
        worst_share_ = finding.share();
        worst_ = std::string(finding.what) + " of " + name;
      }
      if (!whole && finding.share() > farthest_share_) {
        farthest_share_ = finding.share();
        farthest_ = std::string(finding.what) + " of " + name;
      }
      if (finding.within() || failed) continue;
      failed = true;
      Report(r, Describe(name, finding, MeanSlope(history, errors)));
    }
    if (!whole) compared_ += history.numel * static_cast<int64_t>(errors.size());
    // Where all of a region that has a gradient could be missing, passing says nothing.
    const bool live = !whole && history.LiveInEveryStep();
    const double energy = EnergyOf(history);
    if (!whole) energy_ += energy;
    if (live && !(std::min(limits_[r].norm, limits_[r].slope) < 1)) {
      ++num_blind_;
      blind_energy_ += energy;
      blind_ = name + ": the plain engines' errors are so large (norm " + Text(limits_[r].plain_norm) +
               ") that a gradient of zero would pass";
    } else if (live) {
      // A factor is an error of that norm and that slope.
      coarsest_factor_ = std::max(coarsest_factor_, std::min(limits_[r].norm, limits_[r].slope));
    }
  }

  // In fp32 every region must be seen. In 16 bits a small vector's gradient may be noise in any engine: that is allowed
  // as long as all such regions together are a tenth of the gradient's norm, since which tensor is wrong also shows in
  // fp32.
  bool IsBlind() const {
    constexpr double kNormShare = 0.1;
    if (!IsRoundedByStorage(candidate_.front().storage)) return num_blind_ > 0;
    return !(blind_energy_ <= kNormShare * kNormShare * energy_);
  }

  void Report(size_t r, const std::string& detail) {
    const bool whole = r == regions_.size();
    if (whole && divergence_) return;
    const int64_t before = divergence_ ? divergence_->num_tensors : 0;
    divergence_ = Divergence{candidate_[WorstStep(measured_.candidate[r])].step, "gradient",
                             whole ? "" : NameOf(model_, regions_[r]), before + 1, detail};
  }

  std::string Summary() const {
    return std::to_string(regions_.size()) + " regions, " + std::to_string(candidate_.size()) +
           " steps; nearest to its limit: " + worst_ + ", " + Text(worst_share_) +
           " of it; a factor is found in every region" +
           (num_blind_ > 0 ? " but " + std::to_string(num_blind_) + ", which are noise in the plain engines too,"
                           : "") +
           " from 1 +- " + Text(coarsest_factor_) + " on";
  }

  const contract::ModelSpec& model_;
  const std::vector<GradientRegion>& regions_;
  Sights candidate_;
  const Measured& measured_;
  const std::vector<RegionLimit>& limits_;
  int64_t compared_ = 0;
  double worst_share_ = -1;
  double coarsest_factor_ = 0;  // of the regions that have a gradient in every step
  std::string worst_;
  // The same without the whole gradient. The region that is named is nearest to the cause, and may be little beyond its
  // limit while this one is far.
  double farthest_share_ = -1;
  std::string farthest_;
  double energy_ = 0;        // of the truth: squares of the regions' norms, over all steps
  double blind_energy_ = 0;  // of it in regions whose gradient could be missing
  int64_t num_blind_ = 0;
  std::string blind_;  // the last of them
  std::optional<Divergence> divergence_;
};

RealResult Ended(CheckOutcome outcome, const std::string& detail) {
  return {{"gradient", outcome, 0, detail}, std::nullopt};
}

// Outputs of the widest matrices that read one vector: its gradient is a sum over all of them. Query, key and value are
// one matrix of family gpt2 and three of llama, as gate and up are two.
int64_t WidestReaders(const contract::ModelSpec& model) {
  if (model.kind() == contract::Family::kGpt2) return std::max(3 * model.real().width, model.real().hidden);
  return std::max(model.llama().width + 2 * model.llama().kv_width(), 2 * model.llama().hidden);
}

// Terms of the longest sum of a step: rows of the batch (about half of its tokens have a loss weight), channels, or the
// vocabulary.
int64_t LongestSum(const contract::ModelSpec& model, Sights sights) {
  int64_t longest = std::max(WidestReaders(model), model.vocab());
  for (const StepSight& sight : sights) longest = std::max(longest, 2 * sight.tokens);
  return longest;
}

}  // namespace

RealResult CheckGradients(const contract::ModelSpec& model, const Yardstick& yardstick,
                          std::span<const StepSight> candidate) {
  const std::vector<GradientRegion> regions = GradientRegions(model);
  const Sights truth = yardstick.truth;
  for (const auto& [sights, who] : {std::pair<Sights, const char*>{truth, "the truth"},
                                    {yardstick.plain, "the plain engine"},
                                    {yardstick.other_plain, "the other plain engine"},
                                    {candidate, "the candidate"}}) {
    const std::string problem = ShapeProblem(regions, truth, sights, who);
    if (!problem.empty()) return Ended(CheckOutcome::kFail, problem);
  }
  if (truth.size() < 2 || regions.empty()) {
    return Ended(CheckOutcome::kVacuous, std::to_string(truth.size()) + " steps; two at least show how errors vary");
  }
  for (const auto& [sights, who] : {std::pair<Sights, const char*>{truth, "the truth"},
                                    {yardstick.plain, "the plain engine"},
                                    {yardstick.other_plain, "the other plain engine"}}) {
    for (const StepSight& sight : sights) {
      if (IsFinite(regions, sight)) continue;
      return Ended(CheckOutcome::kVacuous, "step " + std::to_string(sight.step) + ": the gradient of " + who +
                                               " is not finite: nothing can be measured by it");
    }
  }
  Truths truths;
  for (const StepSight& sight : truth) truths.push_back(MeasureTruths(regions, sight));
  if (auto wrong = FindWrongClass(model, regions, yardstick, truths, candidate)) {
    RealResult result =
        Ended(CheckOutcome::kFail, "step " + std::to_string(wrong->step) + ": gradient of " + wrong->detail);
    result.divergence = std::move(wrong);
    return result;
  }
  if (std::ranges::any_of(truths, [](const auto& step) { return WholeTruth(step).null; })) {
    return Ended(CheckOutcome::kVacuous, "the truth is zero everywhere in some step: errors have no scale there");
  }
  const Measured measured = Measure(regions, yardstick, truths, candidate);
  const contract::DType storage = candidate.front().storage;
  const double spread = EngineSpread(storage, LongestSum(model, truth));
  return Comparison(model, regions, candidate, measured, RegionLimits(measured.histories, storage, spread)).Run();
}

}  // namespace plumbline::conformance
