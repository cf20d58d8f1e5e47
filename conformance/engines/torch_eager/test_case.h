// SPDX-License-Identifier: Apache-2.0
// Small cases for the tests of this folder, drawn by the contract's batch source from a text. Sizes are odd, prime or
// indivisible.
#pragma once

#include <cstdint>

#include "conformance/contract/case_file.h"

namespace plumbline::conformance::torch_eager {

contract::ExactSpec Dense();
contract::ExactSpec GroupedWithDropout();  // two query heads a key/value head, other bounds, dropout

// Six samples a batch, seed above 2^32, one micro-batch on one rank.
contract::CaseData MakeTestCase(const contract::ExactSpec& model, contract::OptimizerKind optimizer,
                                contract::DType storage, int64_t steps);

}  // namespace plumbline::conformance::torch_eager
