// SPDX-License-Identifier: Apache-2.0
// The trainer through its seam, without LibTorch: updates against the document's formulas in plain int64, and what it
// refuses.
#include "conformance/engines/torch_eager/trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "conformance/contract/error.h"
#include "conformance/engines/torch_eager/test_case.h"

namespace plumbline::conformance::torch_eager {
namespace {

using contract::OptimizerKind;
using contract::TensorKind;

// x mod m by the definition: the r in [0, m) with x = k m + r.
int64_t Mod(int64_t x, int64_t m) {
  const int64_t r = x % m;
  return r < 0 ? r + m : r;
}

// One parameter as the document updates it.
struct Expected {
  std::vector<int64_t> moment;
  std::vector<int64_t> master;
  std::vector<int64_t> weight;

  void Update(OptimizerKind optimizer, const std::vector<int64_t>& gradient, int64_t t, int64_t w) {
    const int64_t modulus = 8 * (2 * w + 1);
    for (size_t i = 0; i < gradient.size(); ++i) {
      if (optimizer == OptimizerKind::kModularMomentum) {
        moment[i] = Mod(moment[i] + gradient[i] + t + 14, 29) - 14;
        master[i] = Mod(master[i] - moment[i] - t, modulus);
      } else {
        master[i] = Mod(master[i] - gradient[i], modulus);
      }
      weight[i] = master[i] / 8 - w;
    }
  }
};

TEST(Trainer, UpdatesFollowTheDocumentBeyondTheModuliOfTheCounter) {
  constexpr int64_t kSteps = 45;  // more than 29 and than m = 24 and 40
  for (const contract::ExactSpec& model : {Dense(), GroupedWithDropout()}) {
    for (const OptimizerKind optimizer : {OptimizerKind::kModularMomentum, OptimizerKind::kModularSgd}) {
      const contract::CaseData data = MakeTestCase(model, optimizer, contract::DType::kF32, kSteps);
      Trainer trainer(data);
      std::vector<Expected> expected;
      for (const contract::ParameterState& s : data.state) expected.push_back({s.moment, s.master, s.weight});
      int64_t num_negative = 0;
      for (int64_t step = 0; step < kSteps; ++step) {
        trainer.Forward(step);
        trainer.Backward();
        trainer.Update();
        for (size_t p = 0; p < expected.size(); ++p) {
          const std::vector<int64_t> gradient = trainer.Values(TensorKind::kGradient, p);
          num_negative += std::count_if(gradient.begin(), gradient.end(), [](int64_t d) { return d < -40; });
          expected[p].Update(optimizer, gradient, step + 1, model.weight_bound);
          ASSERT_EQ(trainer.Values(TensorKind::kMoment, p), expected[p].moment)
              << data.parameters[p].name << ", " << step;
          ASSERT_EQ(trainer.Values(TensorKind::kMaster, p), expected[p].master)
              << data.parameters[p].name << ", " << step;
          ASSERT_EQ(trainer.Values(TensorKind::kWeight, p), expected[p].weight)
              << data.parameters[p].name << ", " << step;
        }
      }
      EXPECT_GT(num_negative, 0) << "no gradient was below every modulus";
    }
  }
}

struct Narrow {
  contract::DType storage;
  int64_t loss_scale, exact;  // every integer up to `exact` survives storage
};
constexpr Narrow kNarrow[] = {{contract::DType::kBF16, 1, 256},
                              {contract::DType::kF16, 1, 2048},
                              {contract::DType::kF16, 64, 65504 / 64},
                              {contract::DType::kF16, 256, 65504 / 256}};

// Small cases cannot show a weight gradient that passed through storage.
TEST(Trainer, NarrowStorageKeepsGradientsThatItCannotHold) {
  contract::ExactSpec model = Dense();
  model.positions = 16;
  model.gradient_fold_bound = 8;  // T g c = 256: activations and their gradients still fit
  for (const auto& [storage, loss_scale, exact] : kNarrow) {
    SCOPED_TRACE(std::string(Name(storage)) + ", loss scale " + std::to_string(loss_scale));
    const OptimizerKind optimizer = OptimizerKind::kModularMomentum;
    const contract::CaseData fp32 = MakeTestCase(model, optimizer, contract::DType::kF32, /*steps=*/3, /*batch=*/1024);
    contract::CaseData narrow = MakeTestCase(model, optimizer, storage, /*steps=*/3, /*batch=*/1024);
    narrow.spec.config.loss_scale = loss_scale;
    Trainer fp32_trainer(fp32), narrow_trainer(narrow);
    int64_t num_unrepresentable = 0;
    for (int64_t step = 0; step < 3; ++step) {
      double fp32_loss = 0, narrow_loss = 0;
      for (const auto& [trainer, loss] : {std::pair(&fp32_trainer, &fp32_loss), {&narrow_trainer, &narrow_loss}}) {
        *loss = trainer->Forward(step).loss;
        trainer->Backward();
        trainer->Update();
      }
      EXPECT_EQ(fp32_loss, narrow_loss) << step;
      for (size_t p = 0; p < fp32.parameters.size(); ++p) {
        const std::vector<int64_t> gradient = fp32_trainer.Values(TensorKind::kGradient, p);
        num_unrepresentable += std::count_if(gradient.begin(), gradient.end(),
                                             [&](int64_t d) { return std::abs(d) > exact && d % 2 != 0; });
        EXPECT_EQ(gradient, narrow_trainer.Values(TensorKind::kGradient, p)) << fp32.parameters[p].name << ", " << step;
      }
    }
    EXPECT_GT(num_unrepresentable, 10);
  }
}

TEST(Trainer, CountsTheTokensThatWeigh) {
  const contract::CaseData data =
      MakeTestCase(Dense(), OptimizerKind::kModularSgd, contract::DType::kBF16, /*steps=*/1);
  const std::vector<int32_t>& u = data.batches.loss_weights;
  EXPECT_EQ(Trainer(data).Forward(0).tokens, std::count_if(u.begin(), u.end(), [](int32_t v) { return v != 0; }));
}

void ExpectRefused(const contract::CaseData& data, const std::function<void(Trainer&)>& act) {
  Trainer trainer(data);
  try {
    act(trainer);
    ADD_FAILURE() << "was accepted";
  } catch (const contract::Error& error) {
    EXPECT_EQ(error.code(), contract::ErrorCode::kInvalidArgument);
  }
}

TEST(Trainer, RefusesAStepWithoutWeightedTokens) {
  contract::CaseData data = MakeTestCase(Dense(), OptimizerKind::kModularSgd, contract::DType::kF32, /*steps=*/1);
  std::fill(data.batches.loss_weights.begin(), data.batches.loss_weights.end(), 0);
  ExpectRefused(data, [](Trainer& trainer) { trainer.Forward(0); });
}

TEST(Trainer, RefusesAGradientThatIsNotAnInteger) {
  contract::CaseData data = MakeTestCase(Dense(), OptimizerKind::kModularSgd, contract::DType::kF32, /*steps=*/1);
  for (int32_t& u : data.batches.loss_weights)
    u = u != 0;  // 1 instead of N or 5N: the gradients are multiples of 1 / N
  ExpectRefused(data, [](Trainer& trainer) {
    trainer.Forward(0);
    trainer.Backward();
  });
}

// With this scale a gradient fold is beyond the largest number of fp16: infinity must end the run, not become a number.
TEST(Trainer, RefusesALossScaleWhoseGradientsOverflow) {
  contract::CaseData data = MakeTestCase(Dense(), OptimizerKind::kModularSgd, contract::DType::kF16, /*steps=*/1);
  data.spec.config.loss_scale = 65536;
  ExpectRefused(data, [](Trainer& trainer) {
    trainer.Forward(0);
    trainer.Backward();
  });
}

}  // namespace
}  // namespace plumbline::conformance::torch_eager
