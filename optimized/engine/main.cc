// SPDX-License-Identifier: Apache-2.0
// The program `optimized`: nothing but main().
#include "optimized/engine/main.h"

int main(int argc, char** argv) { return plumbline::optimized::Main(argc, argv); }
