// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/environment.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <ctime>
#include <fstream>
#include <iterator>

#include "conformance/environment/machine_text.h"

namespace plumbline::conformance {
namespace {

std::string Content(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

std::map<std::string, std::string> EnvironmentFingerprint() {
  utsname system{};
  uname(&system);
  return {{"compiler", "gcc-compatible " __VERSION__},
#ifdef NDEBUG
          {"build_mode", "opt"},
#else
          {"build_mode", "debug"},
#endif
          {"os", LookUp(Content("/etc/os-release"), "PRETTY_NAME", '=')},
          {"kernel", system.release},
          {"cpu_model", LookUp(Content("/proc/cpuinfo"), "model name", ':')},
          {"cores", std::to_string(sysconf(_SC_NPROCESSORS_ONLN))}};
}

std::string UtcNow() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

}  // namespace plumbline::conformance
