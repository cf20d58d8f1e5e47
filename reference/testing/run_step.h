// SPDX-License-Identifier: Apache-2.0
// One step of a trainer of any family, as a case runs it, without trace or dump.
#pragma once

#include <cstdint>

#include "reference/engine/trainer.h"

namespace plumbline::reference {

inline void RunStep(Trainer& trainer, int64_t step) {
  trainer.Forward(step);
  trainer.Backward();
  trainer.CheckGradient();
  trainer.Update();
}

}  // namespace plumbline::reference
