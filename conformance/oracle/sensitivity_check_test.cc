// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/sensitivity_check.h"

#include <gtest/gtest.h>

#include <limits>

#include "conformance/contract/error.h"

namespace plumbline::conformance {
namespace {

using contract::Certificate;
using contract::DType;
using reports::CheckOutcome;

// Every quantity at its largest allowed value for bf16.
Certificate AtTheLimit() {
  Certificate certificate;
  certificate.quantities = {
      {"activation_sum", {16777215, "a"}}, {"gradient_sum", {16777215, "b"}}, {"stored", {256, "c"}},
      {"fold_input", {16777215, "d"}},     {"gradient", {16777216, "e"}},     {"state", {16777216, "f"}}};
  certificate.liveness = {{"embed.weight", kMinLiveShare, 1}, {"pos.weight", 1, kMinLiveShare}};
  return certificate;
}

TEST(CheckCertificate, HoldsAtTheLimitAndFailsOneBeyondInEachQuantity) {
  EXPECT_EQ(CheckCertificate(AtTheLimit(), DType::kBF16, 1).outcome, CheckOutcome::kPass);
  for (const auto& [name, quantity] : AtTheLimit().quantities) {
    Certificate certificate = AtTheLimit();
    certificate.quantities[name].max += 1;
    const auto check = CheckCertificate(certificate, DType::kBF16, 1);
    EXPECT_EQ(check.outcome, CheckOutcome::kVacuous) << name;
    EXPECT_NE(check.detail.find(name), std::string::npos);
    EXPECT_NE(check.detail.find("(" + quantity.where + ")"), std::string::npos);
  }
}

TEST(CheckCertificate, IsVacuousForBf16WhereGradientsFitBf16) {
  Certificate certificate = AtTheLimit();
  certificate.quantities["gradient"].max = 256;
  EXPECT_EQ(CheckCertificate(certificate, DType::kBF16, 1).outcome, CheckOutcome::kVacuous);
  EXPECT_EQ(CheckCertificate(certificate, DType::kF32, 1).outcome, CheckOutcome::kPass);
  certificate.quantities["gradient"].max = 257;
  EXPECT_EQ(CheckCertificate(certificate, DType::kBF16, 1).outcome, CheckOutcome::kPass);
}

TEST(CheckCertificate, AllowsLargerStoredValuesInFp32Only) {
  Certificate certificate = AtTheLimit();
  certificate.quantities["stored"].max = 16777216;
  EXPECT_EQ(CheckCertificate(certificate, DType::kF32, 1).outcome, CheckOutcome::kPass);
  EXPECT_EQ(CheckCertificate(certificate, DType::kBF16, 1).outcome, CheckOutcome::kVacuous);
}

TEST(CheckCertificate, AllowsForFp16WhatItHoldsTimesTheLossScale) {
  const auto outcome = [](double stored, int64_t loss_scale) {
    Certificate certificate = AtTheLimit();
    certificate.quantities["stored"].max = stored;
    return CheckCertificate(certificate, DType::kF16, loss_scale).outcome;
  };
  EXPECT_EQ(outcome(2048, 1), CheckOutcome::kPass);
  EXPECT_EQ(outcome(2049, 1), CheckOutcome::kVacuous);
  EXPECT_EQ(outcome(1023, 64), CheckOutcome::kPass);
  EXPECT_EQ(outcome(1024, 64), CheckOutcome::kVacuous);  // 64 times it is 65536
  EXPECT_EQ(outcome(0, 65536), CheckOutcome::kPass);
  EXPECT_EQ(outcome(1, 65536), CheckOutcome::kVacuous);
}

TEST(CheckCertificate, IsVacuousForFp16WhereScaledGradientsFitFp16) {
  const auto outcome = [](double gradient, int64_t loss_scale) {
    Certificate certificate = AtTheLimit();
    certificate.quantities["stored"].max = 1;
    certificate.quantities["gradient"].max = gradient;
    return CheckCertificate(certificate, DType::kF16, loss_scale).outcome;
  };
  EXPECT_EQ(outcome(2048, 1), CheckOutcome::kVacuous);
  EXPECT_EQ(outcome(2049, 1), CheckOutcome::kPass);
  EXPECT_EQ(outcome(1023, 64), CheckOutcome::kVacuous);
  EXPECT_EQ(outcome(1024, 64), CheckOutcome::kPass);
}

TEST(CheckCertificate, IsVacuousWithoutAQuantityAndWithNaN) {
  Certificate certificate = AtTheLimit();
  certificate.quantities.erase("state");
  EXPECT_EQ(CheckCertificate(certificate, DType::kF32, 1).outcome, CheckOutcome::kVacuous);
  for (const auto& [name, quantity] : AtTheLimit().quantities) {
    for (double odd : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
      certificate = AtTheLimit();
      certificate.quantities[name].max = odd;
      EXPECT_EQ(CheckCertificate(certificate, DType::kF32, 1).outcome, CheckOutcome::kVacuous) << name << " " << odd;
    }
  }
}

TEST(CheckLiveness, HoldsAtTheLevelAndFailsBelowInOneTensor) {
  EXPECT_EQ(CheckLiveness(AtTheLimit()).outcome, CheckOutcome::kPass);
  Certificate certificate = AtTheLimit();
  certificate.liveness[1].moving_weight_share = kMinLiveShare - 0.001;
  EXPECT_EQ(CheckLiveness(certificate).outcome, CheckOutcome::kVacuous);
  EXPECT_NE(CheckLiveness(certificate).detail.find("pos.weight"), std::string::npos);
  for (auto share : {&Certificate::Liveness::nonzero_gradient_share, &Certificate::Liveness::moving_weight_share}) {
    certificate = AtTheLimit();
    certificate.liveness[0].*share = std::numeric_limits<double>::quiet_NaN();
    EXPECT_EQ(CheckLiveness(certificate).outcome, CheckOutcome::kVacuous);
  }
  EXPECT_EQ(CheckLiveness(Certificate{}).outcome, CheckOutcome::kVacuous);
}

contract::TensorFile Weights(const std::vector<int64_t>& values) {
  const auto count = static_cast<int64_t>(values.size());
  const std::vector<int64_t> other(values.size(), 7);
  return {{contract::MakeI64("weight/a@0", {count}, values), contract::MakeI64("moment/a@0", {count}, other)}, {}};
}

TEST(MeasureAmplification, CountsDifferingWeightsAndNothingElse) {
  const Amplification measured = MeasureAmplification("moment", Weights({1, 0, -1, 1}), Weights({1, 1, -1, 0}));
  EXPECT_EQ(measured.total, 4);
  EXPECT_EQ(measured.differing, 2);
  EXPECT_EQ(MeasureAmplification("moment", Weights({1, 0}), Weights({1, 0})).share(), 0);
}

contract::TensorFile Floats(const std::vector<int64_t>& shape, const std::vector<float>& values) {
  return {{contract::MakeF32("weight/a@0", shape, values)}, {}};
}

TEST(MeasureAmplification, RefusesOtherTensorsShapesAndWhatIsNoInteger) {
  const auto refuses = [](const contract::TensorFile& truth, const contract::TensorFile& perturbed) {
    try {
      MeasureAmplification("moment", truth, perturbed);
    } catch (const contract::Error& error) {
      return error.code() == contract::ErrorCode::kInvalidArgument;
    }
    return false;
  };
  const contract::TensorFile truth = Floats({3}, {1, 0, -1});
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{3, 1}, {1, 3}}) {
    EXPECT_TRUE(refuses(truth, Floats(shape, {1, 0, -1})));
    EXPECT_TRUE(refuses(Floats(shape, {1, 0, -1}), truth));
  }
  for (const std::vector<float>& values : {std::vector<float>{}, {1}, {1, 0}, {1, 0, -1, 0}}) {
    const contract::TensorFile other = Floats({static_cast<int64_t>(values.size())}, values);
    EXPECT_TRUE(refuses(truth, other)) << values.size();
    EXPECT_TRUE(refuses(other, truth)) << values.size();
  }
  EXPECT_TRUE(refuses(truth, {}));
  EXPECT_TRUE(refuses(truth, Weights({1, 0, -1})));  // it has a moment too
  for (float odd : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                    -std::numeric_limits<float>::infinity(), std::numeric_limits<float>::denorm_min(), 0.5f}) {
    EXPECT_TRUE(refuses(truth, Floats({3}, {1, odd, -1}))) << odd;
    EXPECT_TRUE(refuses(Floats({3}, {1, odd, -1}), truth)) << odd;
  }
}

TEST(MeasureAmplification, TakesEqualIntegersOfAnySignOfZeroForEqual) {
  EXPECT_EQ(MeasureAmplification("moment", Floats({2}, {0.0f, 1}), Floats({2}, {-0.0f, 1})).differing, 0);
}

TEST(CheckAmplification, IsVacuousBelowTheLevelTooEarlyOrWithoutAnything) {
  const auto outcome = [](int64_t differing, int64_t steps) {
    return CheckAmplification({{"gradient", 90, 100}, {"moment", differing, 100}}, steps).outcome;
  };
  EXPECT_EQ(outcome(40, kMinAmplifyingSteps), CheckOutcome::kPass);
  EXPECT_EQ(outcome(39, kMinAmplifyingSteps), CheckOutcome::kVacuous);
  EXPECT_EQ(outcome(40, kMinAmplifyingSteps - 1), CheckOutcome::kVacuous);
  EXPECT_EQ(CheckAmplification({}, 100).outcome, CheckOutcome::kVacuous);
  EXPECT_EQ(CheckAmplification({{"gradient", 0, 0}}, 100).outcome, CheckOutcome::kVacuous);
}

}  // namespace
}  // namespace plumbline::conformance
