// SPDX-License-Identifier: Apache-2.0
//
// The main program of Catch2 tests, compiled once (the single header takes seconds). A Catch2 test includes
// <catch2/catch.hpp>, defines no main, and depends on //bazel:catch2_main. It holds no tests and no options of ours.

#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
