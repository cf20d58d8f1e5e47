// SPDX-License-Identifier: Apache-2.0
// Implements trainer.h: the list of families.
#include "reference/engine/trainer.h"

#include "reference/engine/exact_trainer.h"
#include "reference/engine/real_trainer.h"

namespace plumbline::reference {

std::unique_ptr<Trainer> MakeTrainer(const contract::CaseData& data) {
  if (data.spec.model.is_exact()) return std::make_unique<ExactTrainer>(data);
  return std::make_unique<RealTrainer>(data);
}

}  // namespace plumbline::reference
