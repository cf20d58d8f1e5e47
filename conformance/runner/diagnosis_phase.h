// SPDX-License-Identifier: Apache-2.0
// The phase after all verdicts in which failures are diagnosed: plans the runs of all diagnoses, shares those of the
// reference, and writes what comes of them into the records. Where nothing failed it runs nothing.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "conformance/contract/batch_source.h"
#include "conformance/contract/engine_protocol.h"
#include "conformance/engines/engine_program.h"
#include "conformance/runner/diagnosis.h"
#include "conformance/runner/schedule.h"
#include "conformance/runner/trial.h"
#include "reports/record/record.h"

namespace plumbline::conformance {

class DiagnosisPhase {
 public:
  // A trial that failed, and by which engine. All of it must outlive the phase.
  struct Failure {
    const Trial* trial = nullptr;
    const contract::ModelSpec* model = nullptr;
    const EngineProgram* program = nullptr;
    const contract::EngineDescription* description = nullptr;
    std::optional<reports::DivergenceRecord>* record = nullptr;  // is set by Finish
  };

  explicit DiagnosisPhase(const contract::TokenSource& source) : source_(source) {}

  void Add(const Failure& failure);
  void AddRuns(const EngineProgram& reference, const contract::EngineDescription& reference_description,
               Schedule& schedule);
  // When the runs are over.
  void Finish();

 private:
  struct Entry {
    Failure failure;
    std::unique_ptr<Diagnosis> diagnosis;  // none: the failure has no values to diagnose
  };

  const contract::TokenSource& source_;
  ProbeCache probes_;
  std::vector<Entry> entries_;
};

}  // namespace plumbline::conformance
