// SPDX-License-Identifier: Apache-2.0
//
// The optimized engine with planted defects that can be turned on by id: the same program as the product, linked from
// the switchable copies of its sources. Only the harness runs it. See run_with_defects.h for the added flags.

#include "conformance/defects/run_with_defects.h"
#include "optimized/engine/main.h"

int main(int argc, char** argv) { return plumbline::defects::RunWithDefects(argc, argv, &plumbline::optimized::Main); }
