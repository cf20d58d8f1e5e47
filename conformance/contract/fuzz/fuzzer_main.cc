// SPDX-License-Identifier: Apache-2.0
// Joins a target to libFuzzer, or to the driver of bazel/fuzz.bzl; either brings main().
#include "conformance/contract/fuzz/only_errors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  plumbline::contract::fuzz::Accepts(data, size);
  return 0;
}
