// SPDX-License-Identifier: Apache-2.0
// The trial of an engine on one metamorphic case, of any family: its whole run and the variants, judged by each other
// alone. Needs no truth; what the traces show by themselves is judged of every run.
#pragma once

#include <optional>
#include <vector>

#include "conformance/cases/metamorphic_cases.h"
#include "conformance/contract/batch_source.h"
#include "conformance/contract/engine_protocol.h"
#include "conformance/oracle/real_check.h"
#include "conformance/oracle/step_sight.h"
#include "conformance/runner/metamorphic_runs.h"
#include "conformance/runner/observation.h"
#include "conformance/runner/run_ends.h"
#include "conformance/runner/trial.h"

namespace plumbline::conformance {

class MetamorphicTrial final : public Trial {
 public:
  // The description must outlive it.
  MetamorphicTrial(MetamorphicRelation relation, contract::Case whole, const contract::EngineDescription& description,
                   const contract::TokenSource& source);

  std::vector<TaskRun> Runs() const override { return made_.runs; }
  void Take(size_t index, const std::filesystem::path& out_dir, const CaseOutcome& outcome) override;

 private:
  struct Seen {
    Observation observation;
    std::optional<SightResult> sight;  // of a real family
    int64_t first_untraced = -1;       // step, of a run that did not end well
  };

  Judgement Judge();
  std::vector<RunEnd> Ends() const;
  bool AllSeen() const;  // nothing is missing that the relation is about
  RealResult Compare() const;
  void PlantChanges();

  MetamorphicRelation relation_;
  contract::Case whole_;
  const contract::EngineDescription& description_;
  MetamorphicRuns made_;
  std::vector<std::optional<Seen>> seen_;  // by run
  Guard guard_;
};

}  // namespace plumbline::conformance
