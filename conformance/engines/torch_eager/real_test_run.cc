// SPDX-License-Identifier: Apache-2.0
// Implementation of real_test_run.h.
#include "conformance/engines/torch_eager/real_test_run.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "conformance/contract/error.h"

namespace plumbline::conformance::torch_eager {

namespace {

// Five bits of exponent, ten of fraction; the largest exponent is that of infinities and NaN, 0 that of subnormals.
double ValueOfFp16(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double sign = bits >> 15 == 0 ? 1 : -1;
  if (exponent == 31) return fraction == 0 ? sign * HUGE_VAL : std::numeric_limits<double>::quiet_NaN();
  return sign * std::ldexp(exponent == 0 ? fraction : 1024 + fraction, std::max(exponent, 1) - 25);
}

}  // namespace

std::vector<double> Doubles(const contract::HostTensor& tensor) {
  std::vector<double> values(tensor.numel());
  for (size_t i = 0; i < values.size(); ++i) {
    if (tensor.dtype == contract::DType::kF64) {
      std::memcpy(&values[i], tensor.data.data() + 8 * i, 8);
    } else if (tensor.dtype == contract::DType::kF16) {
      uint16_t bits;
      std::memcpy(&bits, tensor.data.data() + 2 * i, 2);
      values[i] = ValueOfFp16(bits);
    } else {
      uint32_t bits = 0;  // a bf16 number is the upper half of an fp32 number
      const size_t size = contract::SizeBytes(tensor.dtype);
      std::memcpy(reinterpret_cast<char*>(&bits) + 4 - size, tensor.data.data() + size * i, size);
      float value;
      std::memcpy(&value, &bits, 4);
      values[i] = value;
    }
  }
  return values;
}

size_t IndexOf(const contract::CaseData& data, const std::string& parameter) {
  for (size_t i = 0; i < data.parameters.size(); ++i) {
    if (data.parameters[i].name == parameter) return i;
  }
  contract::Fail(contract::ErrorCode::kInternal, "no parameter " + parameter);
}

contract::RealStep TrainStep(RealTrainer& trainer, const contract::CaseData& data, int64_t step) {
  for (int64_t a = 0; a < data.spec.config.accumulation_steps; ++a) {
    trainer.Forward(step, a);
    trainer.Backward();
  }
  return trainer.Update(step);
}

}  // namespace plumbline::conformance::torch_eager
