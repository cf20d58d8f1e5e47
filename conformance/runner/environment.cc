// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/environment.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <ctime>
#include <fstream>

namespace plumbline::conformance {
namespace {

// The value behind `key` and `separator` in a file of such lines, without quotes; empty if there is none.
std::string Lookup(const char* path, const std::string& key, char separator) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const size_t at = line.find(separator);
    if (at == std::string::npos) continue;
    std::string value = line.substr(at + 1);
    std::erase(value, '"');
    const size_t begin = value.find_first_not_of(" \t");
    return begin == std::string::npos ? "" : value.substr(begin);
  }
  return "";
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
          {"os", Lookup("/etc/os-release", "PRETTY_NAME", '=')},
          {"kernel", system.release},
          {"cpu_model", Lookup("/proc/cpuinfo", "model name", ':')},
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
