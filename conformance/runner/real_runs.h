// SPDX-License-Identifier: Apache-2.0
// The runs that a case of a real family is made of. Pure: no files.
//
// Single steps begin at states of the truth, so that errors do not pile up; the trajectory is what relations (equal bit
// for bit) are checked on, and what shows the loss fall.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/cases/problem.h"
#include "conformance/contract/case_file.h"

namespace plumbline::conformance {

// Steps that begin at an injected state: the first three, where counters and schedules go wrong, and later ones. Eight,
// so that the errors of the plain engines in bf16 are known well enough for a limit (docs/tolerance.md).
inline constexpr int64_t kInjectedSteps[] = {0, 1, 2, 4, 7, 11, 14, 17};
// Those that a trajectory of so many steps has.
std::vector<int64_t> InjectedSteps(int64_t steps);
// Steps of the saving run, which ends with its save half way through the trajectory; 1 where there is no other half.
int64_t NumSavedSteps(const contract::Case& base);
bool HasResumedHalf(const contract::Case& base);

// `base` is the whole trajectory in the layout under test: first_step 0.
contract::Case StepCase(const contract::Case& base, int64_t step);  // one step, dumped
// The step whose gradient, by its injected state, is not finite ("inf", "nan"), and which must be skipped.
inline constexpr int64_t kSkippedStep = 1;
// If it is followed, the next step is made, from the same state. Saves after the skipped step, if asked to.
contract::Case SkippedCase(const contract::Case& base, const std::string& value, bool is_followed, bool save = false);
// Resumes from what `skipped` saved, and makes the step after it.
contract::Case ResumedSkippedCase(const contract::Case& skipped);
// Steps from a state whose loss scale makes all of them overflow; two are dumped.
contract::Case OverflowCase(const contract::Case& base);
// A late step in bf16 or fp16 from master weights that it does not hold: only its update can be judged.
contract::Case UnroundedCase(const contract::Case& base);
contract::Case SavingCase(const contract::Case& base, bool save);  // the saved half
contract::Case RelatedCase(const contract::Case& base);            // the saved half in the layout below

// The simplest layout whose sums are made in the same order as `config`'s, so that an engine with fixed orders must
// give the same bits: the same ranks, micro-batches and storage; one bucket, no overlap; stage 0, or, where stages 2
// and 3 reduce each of several micro-batches by itself, stage 2 for these two.
contract::RunConfig RelatedLayout(const contract::RunConfig& config);

// Two plain layouts (one rank) that sum in different orders: the whole batch at once, and in micro-batches. In fp16 with a dynamic scale
// theirs is constant: above all that cases have, so that where a plain engine has no overflow no other has, and the
// smallest, so that as much is lost below what fp16 holds.
contract::RunConfig PlainLayout(const Problem& problem, contract::DType storage);
contract::RunConfig OtherPlainLayout(const Problem& problem, contract::DType storage);

}  // namespace plumbline::conformance
