// SPDX-License-Identifier: Apache-2.0
// The facts about this machine and this build that decide what Plumbline can do here. Looking is machine_probe.h's,
// judging is diagnosis.h's. An empty text or optional means: not found, or not told.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "conformance/environment/nvml.h"

namespace plumbline::conformance {

struct FoundLibrary {
  std::string path = {};
  std::string version = {};
};

struct Folder {
  std::string path = {};
  bool writable = false;
  std::optional<uint64_t> free_bytes = {};
};

struct EngineStart {
  std::string name = {};
  std::string error = {};  // empty: it started and described itself
};

struct Machine {
  std::string os_name = {};
  std::string os_id = {};
  std::string os_version = {};
  std::string kernel = {};
  std::string architecture = {};

  std::string cpu_model = {};
  std::set<std::string> cpu_flags = {};
  int cores = 0;
  double cores_usable = 0;  // after affinity and control group
  std::optional<uint64_t> cpu_clock_khz = {};
  std::optional<uint64_t> memory_bytes = {};  // after the control group
  int numa_nodes = 0;

  std::string compiler_built = {};
  std::string compiler_found = {};
  std::string bazel_package = {};
  std::vector<EngineStart> engines = {};

  std::string libtorch_root = {};  // where the build took it from
  std::string libtorch_version = {};
  bool libtorch_found = false;

  std::string cuda_root = {};  // where the build looks for a toolkit
  std::string nvcc_version = {};
  std::string cuda_headers = {};
  std::optional<FoundLibrary> nccl = {};
  std::optional<FoundLibrary> cudnn = {};
  GpuDriver gpu_driver = {};

  Folder cache = {};
  Folder here = {};

  int io_uring_errno = 0;                            // 0: a ring can be made
  std::optional<uint64_t> locked_memory_bytes = {};  // none: unlimited
  std::optional<uint64_t> open_files = {};           // none: unlimited
  std::string transparent_huge_pages = {};
  uint64_t huge_pages = 0;
};

}  // namespace plumbline::conformance
