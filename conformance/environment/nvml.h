// SPDX-License-Identifier: Apache-2.0
// The NVIDIA driver and its GPUs, asked through the driver's own library, which is loaded when the question is asked:
// nothing is linked, and a machine without the driver is an answer, not an error. It changes no setting.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace plumbline::conformance {

// What the driver does not tell stays empty.
struct Gpu {
  std::string name = {};
  std::optional<uint64_t> memory_bytes = {};
  std::string compute_capability = {};  // "9.0"
  std::optional<bool> mig = {};
  std::optional<bool> persistence = {};
  std::optional<bool> ecc = {};
  std::optional<uint64_t> clock_mhz = {};  // of the multiprocessors, now
  std::optional<uint64_t> clock_max_mhz = {};
  friend bool operator==(const Gpu&, const Gpu&) = default;
};

struct GpuDriver {
  std::string absent = {};  // why there is none, or empty
  std::string version = {};
  std::string cuda_version = {};  // the newest that it can run
  std::vector<Gpu> gpus = {};
};

inline constexpr const char* kNvmlLibrary = "libnvidia-ml.so.1";

GpuDriver AskGpuDriver(const std::string& library = kNvmlLibrary);

}  // namespace plumbline::conformance
