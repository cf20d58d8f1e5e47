// SPDX-License-Identifier: Apache-2.0
// What a step leaves in the trace and in a dump: every tensor whole, since there is one rank. Formats: docs/formats.md.
#pragma once

#include <cstdint>
#include <vector>

#include "conformance/contract/model_spec.h"
#include "conformance/contract/tensor_file.h"
#include "conformance/contract/trace.h"
#include "reference/engine/trainer.h"
#include "reference/ops/matrix.h"

namespace plumbline::reference {

// The digest of a whole tensor: of its integers (docs/exact-family.md, "Digests"), or, of reals, of the bits of its
// fp64 values.
contract::Digest DigestOfIntegers(const Matrix& tensor);
contract::Digest DigestOfReals(const Matrix& tensor);

// The trace's record of the trainer's last step.
contract::StepRecord RecordOf(const Trainer& trainer, const std::vector<contract::ParameterSpec>& parameters,
                              int64_t step);

// The dump of the trainer's last step: KIND/NAME@0, one-dimensional, I64 in family exact, else F64.
contract::TensorFile DumpOf(const Trainer& trainer, const std::vector<contract::ParameterSpec>& parameters);

}  // namespace plumbline::reference
