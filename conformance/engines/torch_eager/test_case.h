// SPDX-License-Identifier: Apache-2.0
// Small cases for the tests of this folder, drawn by the contract's batch source from a text. Sizes are odd, prime or
// indivisible.
#pragma once

#include <cstdint>

#include "conformance/contract/case_file.h"

namespace plumbline::conformance::torch_eager {

contract::ExactSpec Dense();
contract::ExactSpec GroupedWithDropout();  // two query heads a key/value head, other bounds, dropout

// Seed above 2^32, one micro-batch on one rank.
contract::CaseData MakeTestCase(const contract::ExactSpec& model, contract::OptimizerKind optimizer,
                                contract::DType storage, int64_t steps, int64_t batch = 6);

contract::Gpt2Spec Tiny();        // two layers, tied, no dropout
contract::LlamaSpec TinyLlama();  // two layers, two query heads a key/value head, no dropout
// All that a llama may have: one key/value head, another theta, dropout, unused and frozen parameters, padding.
contract::LlamaSpec UnequalLlama();

// A real family: the same seed, `batch` samples in `accumulation` micro-batches, a text of bytes modulo the vocabulary.
contract::CaseData MakeRealCase(const contract::ModelSpec& model, contract::RunConfig config, int64_t steps,
                                int64_t batch = 6, int64_t accumulation = 1);

}  // namespace plumbline::conformance::torch_eager
