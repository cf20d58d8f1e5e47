// SPDX-License-Identifier: Apache-2.0
#include "conformance/environment/diagnosis.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "conformance/environment/machine_text.h"

namespace plumbline::conformance {
namespace {

constexpr uint64_t kMib = uint64_t{1} << 20;
constexpr uint64_t kGib = uint64_t{1} << 30;

// A full `verify` was measured to hold 84 MB of cases and traces at once.
constexpr uint64_t kVerifyDiskBytes = 128 * kMib;
constexpr uint64_t kComfortableDiskBytes = kGib;
// LibTorch unpacked 1.1 GB and its wheels 0.5 GB during set-up, build results of three sanitizers 2 GB.
constexpr uint64_t kCacheBytes = 4 * kGib;
// A compiler on LibTorch's headers takes 1.3 GB, Bazel's server 0.4 GB.
constexpr uint64_t kBuildMemoryBytes = 2 * kGib;
constexpr uint64_t kLockedMemoryBytes = 64 * kMib;
constexpr uint64_t kOpenFiles = 1024;

std::string OrNone(const std::string& text, const char* otherwise = "none") { return text.empty() ? otherwise : text; }

std::string Rounded(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), value == std::floor(value) ? "%.0f" : "%.1f", value);
  return text;
}

std::string Size(std::optional<uint64_t> bytes, const char* otherwise = "unknown size") {
  if (!bytes) return otherwise;
  if (*bytes < kMib) return std::to_string(*bytes / 1024) + " KiB";
  if (*bytes < kGib) return Rounded(static_cast<double>(*bytes / kMib)) + " MiB";
  return Rounded(std::round(static_cast<double>(*bytes) / static_cast<double>(kGib) * 10) / 10) + " GiB";
}

// A finding that is `state` with its consequence, or ok without one.
Finding Judge(const char* id, bool ok, State otherwise, std::string value, std::string disables) {
  return {id, ok ? State::kOk : otherwise, std::move(value), ok ? "" : std::move(disables), false};
}

Finding Required(Finding finding) {
  finding.required = true;
  return finding;
}

Finding Os(const Machine& machine) {
  const bool debian = machine.os_id == "debian" && machine.os_version == "12" && machine.architecture == "x86_64";
  return Judge("os", debian, State::kWeak, OrNone(machine.os_name, "unknown") + ", " + machine.architecture,
               "automatic set-up: ./plumbline installs what is missing on Debian 12, x86_64, only");
}

Finding Kernel(const Machine& machine) {
  return Required(Judge("kernel", KernelAtLeast(machine.kernel, 5, 3), State::kMissing,
                        OrNone(machine.kernel, "unknown"),
                        "verify: engines are watched through pidfd_open, of Linux 5.3"));
}

Finding Cpu(const Machine& machine) {
  const std::string value = OrNone(machine.cpu_model, "unknown model") + ", " + Rounded(machine.cores_usable) + " of " +
                            std::to_string(machine.cores) + " cores usable";
  return Judge("cpu", machine.cores_usable >= 2, State::kWeak, value,
               "speed: engines run one after the other, and the ranks of one engine take turns");
}

Finding InstructionSets(const Machine& machine) {
  std::string value;
  for (const char* flag : {"avx2", "fma", "f16c", "avx512f", "avx512_bf16", "amx_tile", "amx_bf16", "amx_int8"}) {
    if (machine.cpu_flags.contains(flag)) value += (value.empty() ? "" : " ") + std::string(flag);
  }
  const bool vectors = machine.cpu_flags.contains("avx2");
  const bool bf16 = machine.cpu_flags.contains("avx512_bf16") || machine.cpu_flags.contains("amx_bf16");
  return Judge("instruction_sets", vectors && bf16, State::kWeak, OrNone(value),
               vectors ? "speed of LibTorch's bf16 products on the CPU (no avx512_bf16 or amx_bf16); no result changes"
                       : "speed of LibTorch on the CPU (no avx2); no result changes");
}

Finding MemorySize(const Machine& machine) {
  return Judge("memory", machine.memory_bytes.value_or(0) >= kBuildMemoryBytes, State::kWeak,
               Size(machine.memory_bytes),
               "building: a file that includes LibTorch takes 1.3 GB, Bazel 0.4 GB; use build --jobs=1");
}

Finding NumaNodes(const Machine& machine) {
  return Judge("numa", machine.numa_nodes >= 1, State::kWeak,
               machine.numa_nodes == 0
                   ? "unknown"
                   : std::to_string(machine.numa_nodes) + (machine.numa_nodes == 1 ? " node" : " nodes"),
               "performance suites (planned): ranks cannot be placed near their memory");
}

Finding Compiler(const Machine& machine) {
  constexpr uint64_t kOldest = 12;
  const bool found = !machine.compiler_found.empty();
  const uint64_t major = LeadingNumber(machine.compiler_found).value_or(0);
  const std::string value =
      "built with " + machine.compiler_built + ", found " + (found ? "gcc " + machine.compiler_found : "none");
  return Judge("compiler", major >= kOldest, found ? State::kWeak : State::kMissing, value,
               "building and ./plumbline test: C++20 as gcc 12 takes it is needed");
}

Finding Bazel(const Machine& machine) {
  return Judge("bazel", !machine.bazel_package.empty(), State::kMissing,
               machine.bazel_package.empty() ? "none" : "bazel-bootstrap " + machine.bazel_package,
               "building and ./plumbline test");
}

Finding LibTorch(const Machine& machine) {
  const std::string value = machine.libtorch_found
                                ? OrNone(machine.libtorch_version, "unknown version") + " in " + machine.libtorch_root
                                : "not in " + machine.libtorch_root + ", where the build found it";
  return Required(Judge("libtorch", machine.libtorch_found, State::kMissing, value,
                        "verify: the engines optimized and torch_eager do not start"));
}

Finding Engines(const Machine& machine) {
  std::string value;
  std::string broken;
  for (const EngineStart& engine : machine.engines) {
    std::string& list = engine.error.empty() ? value : broken;
    list += (list.empty() ? "" : ", ") + engine.name + (engine.error.empty() ? "" : " (" + engine.error + ")");
  }
  if (!broken.empty()) value = broken;
  return Required(Judge("engines", broken.empty() && !machine.engines.empty(), State::kMissing, OrNone(value),
                        "verify: these do not start"));
}

Finding CudaToolkit(const Machine& machine) {
  const bool complete = !machine.nvcc_version.empty() && !machine.cuda_headers.empty();
  const bool nothing = machine.nvcc_version.empty() && machine.cuda_headers.empty();
  const std::string value = nothing ? "none in " + machine.cuda_root
                                    : "nvcc " + OrNone(machine.nvcc_version) + ", headers " +
                                          OrNone(machine.cuda_headers) + " in " + machine.cuda_root;
  return Judge("cuda_toolkit", complete, nothing ? State::kMissing : State::kWeak, value,
               "building GPU code; nothing that runs on the CPU");
}

Finding Driver(const Machine& machine) {
  const GpuDriver& driver = machine.gpu_driver;
  const bool usable = driver.absent.empty() && !driver.gpus.empty();
  const std::string value = !driver.absent.empty()
                                ? "no driver: " + driver.absent
                                : OrNone(driver.version, "unknown version") + ", CUDA " +
                                      OrNone(driver.cuda_version, "unknown") + ", " +
                                      std::to_string(driver.gpus.size()) + (driver.gpus.size() == 1 ? " GPU" : " GPUs");
  return Judge("gpu_driver", usable, State::kMissing, value,
               "everything on GPUs (planned): GPU tests are not selected, GPU cases would be NOT_RUN");
}

std::string Switch(const char* name, std::optional<bool> on) {
  return std::string(", ") + name + (!on ? " unknown" : *on ? " on" : " off");
}

std::string GpuValue(const Gpu& gpu) {
  const auto clock = [](std::optional<uint64_t> mhz) { return mhz ? std::to_string(*mhz) : std::string("unknown"); };
  return OrNone(gpu.name, "tells nothing") + ", " + Size(gpu.memory_bytes) + ", compute capability " +
         OrNone(gpu.compute_capability, "unknown") + Switch("MIG", gpu.mig) + Switch("persistence", gpu.persistence) +
         Switch("ECC", gpu.ecc) + ", clock " + clock(gpu.clock_mhz) + " of " + clock(gpu.clock_max_mhz) + " MHz";
}

// All weaknesses of one GPU, not only the first.
std::string GpuWeaknesses(const Gpu& gpu) {
  constexpr uint64_t kCompiledFor = 9;  // .cu files are compiled for sm_90a
  std::vector<std::string> weaknesses;
  if (LeadingNumber(gpu.compute_capability).value_or(0) != kCompiledFor) {
    weaknesses.push_back("our GPU code, which is compiled for compute capability 9.0");
  }
  if (gpu.mig.value_or(false)) weaknesses.push_back("NCCL between MIG slices, and timings that are the device's");
  if (!gpu.ecc.value_or(true)) weaknesses.push_back("finding memory errors (ECC is off)");
  if (!gpu.persistence.value_or(true)) weaknesses.push_back("quick starts (persistence is off: the driver reloads)");
  if (!gpu.clock_mhz) weaknesses.push_back("clocks in performance records");
  std::string text;
  for (const std::string& weakness : weaknesses) text += (text.empty() ? "" : "; ") + weakness;
  return text;
}

Finding OneGpu(size_t index, const Gpu& gpu) {
  const std::string weaknesses = GpuWeaknesses(gpu);
  return Judge(("gpu" + std::to_string(index)).c_str(), weaknesses.empty(), State::kWeak, GpuValue(gpu), weaknesses);
}

Finding Library(const char* id, const std::optional<FoundLibrary>& library, const char* disables) {
  return Judge(id, library.has_value(), State::kMissing,
               library ? OrNone(library->version, "unknown version") + ", " + library->path : "none", disables);
}

std::string FolderValue(const Folder& folder) {
  return Size(folder.free_bytes) + " free in " + folder.path + (folder.writable ? "" : ", which cannot be written");
}

Finding CacheDisk(const Machine& machine) {
  const Folder& cache = machine.cache;
  return Judge("disk_cache", cache.writable && cache.free_bytes.value_or(0) >= kCacheBytes, State::kWeak,
               FolderValue(cache), "set-up and builds: LibTorch and build results take up to 4 GB there");
}

Finding DiskHere(const Machine& machine) {
  const Folder& here = machine.here;
  const uint64_t free_bytes = here.free_bytes.value_or(0);
  const bool enough = here.writable && free_bytes >= kVerifyDiskBytes;
  return Required(Judge("disk_here", enough && free_bytes >= kComfortableDiskBytes,
                        enough ? State::kWeak : State::kMissing, FolderValue(here),
                        enough
                            ? "keeping results: failed cases leave their folders behind"
                            : "verify: results go below the current folder, a run holds 84 MB (--out names another)"));
}

Finding IoUring(const Machine& machine) {
  const bool works = machine.io_uring_errno == 0;
  return Judge("io_uring", works, State::kMissing, works ? "available" : std::strerror(machine.io_uring_errno),
               "offload to NVMe (planned)");
}

Finding LockedMemory(const Machine& machine) {
  return Judge("locked_memory", machine.locked_memory_bytes.value_or(kLockedMemoryBytes) >= kLockedMemoryBytes,
               State::kWeak, Size(machine.locked_memory_bytes, "unlimited"),
               "registered io_uring buffers of offload (planned); raise it with ulimit -l");
}

Finding OpenFiles(const Machine& machine) {
  return Judge("open_files", machine.open_files.value_or(kOpenFiles) >= kOpenFiles, State::kWeak,
               machine.open_files ? std::to_string(*machine.open_files) : "unlimited",
               "verify with many --jobs, and engines of many ranks; raise it with ulimit -n");
}

Finding HugePages(const Machine& machine) {
  const std::string& transparent = machine.transparent_huge_pages;
  const bool some = machine.huge_pages > 0 || transparent == "always" || transparent == "madvise";
  return Judge(
      "huge_pages", some, State::kWeak,
      "transparent " + OrNone(transparent, "unknown") + ", " + std::to_string(machine.huge_pages) + " reserved",
      "speed of large buffers in host memory; no result changes");
}

Finding Clocks(const Machine& machine) {
  return Judge("cpu_clock", machine.cpu_clock_khz.has_value(), State::kWeak,
               machine.cpu_clock_khz ? std::to_string(*machine.cpu_clock_khz / 1000) + " MHz" : "not readable",
               "CPU clocks in performance records (planned)");
}

}  // namespace

std::string_view Name(State state) {
  switch (state) {
    case State::kOk:
      return "ok";
    case State::kWeak:
      return "weak";
    case State::kMissing:
      return "missing";
  }
  return "missing";
}

std::vector<Finding> Diagnose(const Machine& machine) {
  std::vector<Finding> findings = {
      Os(machine),         Kernel(machine),    Cpu(machine),         InstructionSets(machine),
      MemorySize(machine), NumaNodes(machine), Compiler(machine),    Bazel(machine),
      LibTorch(machine),   Engines(machine),   CudaToolkit(machine), Driver(machine)};
  for (size_t index = 0; index < machine.gpu_driver.gpus.size(); ++index) {
    findings.push_back(OneGpu(index, machine.gpu_driver.gpus[index]));
  }
  const Finding rest[] = {Library("nccl", machine.nccl, "collectives between GPUs (planned)"),
                          Library("cudnn", machine.cudnn, "attention on GPUs (planned)"),
                          CacheDisk(machine),
                          DiskHere(machine),
                          IoUring(machine),
                          LockedMemory(machine),
                          OpenFiles(machine),
                          HugePages(machine),
                          Clocks(machine)};
  findings.insert(findings.end(), std::begin(rest), std::end(rest));
  return findings;
}

bool CanVerify(const std::vector<Finding>& findings) {
  return std::none_of(findings.begin(), findings.end(),
                      [](const Finding& finding) { return finding.required && finding.state == State::kMissing; });
}

}  // namespace plumbline::conformance
