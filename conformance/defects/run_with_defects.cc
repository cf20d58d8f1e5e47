// SPDX-License-Identifier: Apache-2.0
//
// Strips the defect flags and hands over to the engine. Parses nothing else.

#include "conformance/defects/run_with_defects.h"

#include <cstdio>
#include <stdexcept>
#include <string_view>

#include "conformance/defects/switch.h"

namespace plumbline::defects {
namespace {

constexpr int kBadUsage = 2;

void PrintDefects() {
  for (const Defect& defect : Defects()) {
    std::printf("%s\t%s\t%s\t%s\n", defect.id.data(), defect.title.data(), defect.expect.data(), defect.family.data());
  }
}

}  // namespace

int RunWithDefects(int argc, char** argv, int (*engine_main)(int argc, char** argv)) {
  constexpr std::string_view kFlag = "--defect";
  int kept = 0;
  for (int i = 0; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (i > 0 && argument == "--list-defects") {
      PrintDefects();
      return 0;
    }
    const bool with_equals = argument.starts_with("--defect=");
    if (i == 0 || (argument != kFlag && !with_equals)) {
      argv[kept++] = argv[i];
      continue;
    }
    if (!with_equals && i + 1 == argc) {
      std::fprintf(stderr, "--defect needs an id; --list-defects shows them\n");
      return kBadUsage;
    }
    try {
      Activate(with_equals ? argument.substr(kFlag.size() + 1) : std::string_view(argv[++i]));
    } catch (const std::invalid_argument& error) {
      std::fprintf(stderr, "--defect: %s\n", error.what());
      return kBadUsage;
    }
  }
  argv[kept] = nullptr;
  return engine_main(kept, argv);
}

}  // namespace plumbline::defects
