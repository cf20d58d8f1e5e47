// SPDX-License-Identifier: Apache-2.0
// What the sanitizers are told in every program of a sanitized build (.bazelrc links this file into each of them):
// which reports are about code that is not ours. It is compiled in, not a file, because engines and other children of a
// test run in folders from which no relative path leads back here, and a sanitizer that cannot read its file ends at
// once.

// LibTorch is not compiled with ThreadSanitizer, which therefore cannot see how that library's own threads hand work
// over and takes what they do through intercepted functions (memcpy, free) for races. Our code stays fully judged.
extern "C" const char* __tsan_default_suppressions() { return "called_from_lib:libtorch_cpu.so\n"; }

extern "C" const char* __ubsan_default_options() { return "print_stacktrace=1"; }
