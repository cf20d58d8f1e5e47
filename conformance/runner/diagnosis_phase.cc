// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/diagnosis_phase.h"

#include "conformance/runner/place_in_text.h"

namespace plumbline::conformance {

void DiagnosisPhase::Add(const Failure& failure) {
  Entry entry{failure, nullptr};
  if (const std::optional<Lead>& lead = failure.trial->lead()) {
    entry.diagnosis =
        std::make_unique<Diagnosis>(*lead, *failure.model, failure.description->Has("dump"), source_, probes_);
  }
  entries_.push_back(std::move(entry));
}

void DiagnosisPhase::AddRuns(const EngineProgram& reference, const contract::EngineDescription& reference_description,
                             Schedule& schedule) {
  for (const auto& [key, probe] : probes_) {
    schedule.Add(reference, reference_description, {&probe->task()}, /*keep=*/false);
  }
  for (const Entry& entry : entries_) {
    if (!entry.diagnosis || !entry.diagnosis->candidate()) continue;
    schedule.Add(*entry.failure.program, *entry.failure.description, {entry.diagnosis->candidate()}, /*keep=*/false);
  }
}

void DiagnosisPhase::Finish() {
  for (const Entry& entry : entries_) {
    *entry.failure.record = entry.diagnosis
                                ? entry.diagnosis->Finish()
                                : PlaceInText(entry.failure.trial->judgement().message, *entry.failure.model);
  }
}

}  // namespace plumbline::conformance
