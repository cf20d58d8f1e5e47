// SPDX-License-Identifier: Apache-2.0
#include "conformance/environment/machine_probe.h"

#include <linux/io_uring.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include "conformance/environment/machine_text.h"

namespace plumbline::conformance {
namespace {

constexpr uint64_t kBytesPerKib = 1024;

std::string Content(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The standard output of a shell command, for at most five seconds.
std::string Output(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(("exec timeout 5 " + command + " 2>/dev/null").c_str(), "r"),
                                                   pclose);
  std::string output;
  char buffer[4096];
  for (size_t size; pipe && (size = fread(buffer, 1, sizeof(buffer), pipe.get())) > 0;) output.append(buffer, size);
  return output;
}

void ProbeSystem(Machine& machine) {
  const std::string release = Content("/etc/os-release");
  machine.os_name = LookUp(release, "PRETTY_NAME", '=');
  machine.os_id = LookUp(release, "ID", '=');
  machine.os_version = LookUp(release, "VERSION_ID", '=');
  utsname system{};
  uname(&system);
  machine.kernel = system.release;
  machine.architecture = system.machine;
}

void ProbeProcessors(Machine& machine) {
  const std::string cpuinfo = Content("/proc/cpuinfo");
  machine.cpu_model = LookUp(cpuinfo, "model name", ':');
  machine.cpu_flags = Words(LookUp(cpuinfo, "flags", ':'));
  machine.cores = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  machine.cores_usable = sched_getaffinity(0, sizeof(allowed), &allowed) == 0 ? CPU_COUNT(&allowed) : machine.cores;
  if (const auto quota = CoresOfCpuMax(Content("/sys/fs/cgroup/cpu.max"))) {
    machine.cores_usable = std::min(machine.cores_usable, *quota);
  }
  machine.cpu_clock_khz = LeadingNumber(Content("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq"));
}

void ProbeMemory(Machine& machine) {
  const std::string meminfo = Content("/proc/meminfo");
  if (const auto kib = LeadingNumber(LookUp(meminfo, "MemTotal", ':'))) machine.memory_bytes = *kib * kBytesPerKib;
  if (const auto limit = LeadingNumber(Content("/sys/fs/cgroup/memory.max"))) {
    machine.memory_bytes = std::min(machine.memory_bytes.value_or(*limit), *limit);
  }
  machine.huge_pages = LeadingNumber(LookUp(meminfo, "HugePages_Total", ':')).value_or(0);
  machine.transparent_huge_pages = ChosenWord(Content("/sys/kernel/mm/transparent_hugepage/enabled"));
  machine.numa_nodes = CountList(Content("/sys/devices/system/node/online"));
}

std::optional<uint64_t> Limit(int resource) {
  rlimit limit{};
  if (getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  return limit.rlim_cur;
}

// 0, or why no ring can be made.
int TryIoUring() {
  io_uring_params params{};
  const long ring = syscall(SYS_io_uring_setup, 1, &params);
  if (ring < 0) return errno;
  close(static_cast<int>(ring));
  return 0;
}

Folder ProbeFolder(const std::string& path) {
  std::error_code error;
  std::filesystem::path existing = std::filesystem::absolute(path, error).lexically_normal();
  Folder folder{.path = existing.string()};
  while (!std::filesystem::exists(existing, error) && existing.has_relative_path()) existing = existing.parent_path();
  folder.writable = access(existing.c_str(), W_OK | X_OK) == 0;
  struct statvfs space {};
  if (statvfs(existing.c_str(), &space) == 0) folder.free_bytes = uint64_t{space.f_bavail} * space.f_frsize;
  return folder;
}

void ProbeTools(Machine& machine) {
  machine.compiler_built = __VERSION__;
  const std::string found = Output("gcc -dumpfullversion");
  machine.compiler_found = found.substr(0, found.find('\n'));
  machine.bazel_package = InstalledVersion(Content("/var/lib/dpkg/status"), "bazel-bootstrap");
}

// The numbers that a header defines as `parts`, with points between them.
std::string VersionIn(const std::string& header, std::initializer_list<const char*> parts) {
  const std::string text = Content(header);
  std::string version;
  for (const char* part : parts) {
    const std::string number = Define(text, part);
    if (!number.empty()) version += (version.empty() ? "" : ".") + number;
  }
  return version;
}

// PLUMBLINE_LIBTORCH_ROOT and PLUMBLINE_CUDA_ROOT are what the build used (BUILD).
void ProbeLibTorch(Machine& machine) {
  const std::filesystem::path root = PLUMBLINE_LIBTORCH_ROOT;
  std::error_code error;
  machine.libtorch_root = root.string();
  machine.libtorch_found = std::filesystem::exists(root / "lib/libtorch_cpu.so", error);
  // The first is where 2.9 and later keep it.
  for (const char* header : {"include/torch/headeronly/version.h", "include/torch/csrc/api/include/torch/version.h"}) {
    if (!machine.libtorch_version.empty()) break;
    machine.libtorch_version =
        VersionIn(root / header, {"TORCH_VERSION_MAJOR", "TORCH_VERSION_MINOR", "TORCH_VERSION_PATCH"});
  }
}

// The first of `folders` whose `lib` holds the library. Its version is that of `header` beside it, else the one in the
// name of the file that the link leads to.
std::optional<FoundLibrary> FindLibrary(const std::vector<std::filesystem::path>& folders, const char* library,
                                        const char* header, std::initializer_list<const char*> version_parts) {
  std::error_code error;
  for (const std::filesystem::path& folder : folders) {
    for (const char* lib : {"lib64", "lib", "lib/x86_64-linux-gnu"}) {
      const std::filesystem::path file = folder / lib / library;
      if (!std::filesystem::exists(file, error)) continue;
      std::string version = VersionIn(folder / "include" / header, version_parts);
      if (version.empty()) version = SharedObjectVersion(std::filesystem::canonical(file, error).filename().string());
      return FoundLibrary{file.string(), version};
    }
  }
  return std::nullopt;
}

void ProbeCuda(Machine& machine) {
  const std::filesystem::path root = PLUMBLINE_CUDA_ROOT;
  const std::filesystem::path wheels = std::filesystem::path(machine.libtorch_root).parent_path() / "nvidia";
  machine.cuda_root = root.string();
  if (access((root / "bin/nvcc").c_str(), X_OK) == 0) {
    machine.nvcc_version = NvccVersion(Output("'" + (root / "bin/nvcc").string() + "' --version"));
  }
  if (const auto number = LeadingNumber(Define(Content(root / "include/cuda.h"), "CUDA_VERSION"))) {
    machine.cuda_headers = CudaVersion(*number);
  }
  machine.nccl = FindLibrary({root, wheels / "nccl", "/usr"}, "libnccl.so.2", "nccl.h",
                             {"NCCL_MAJOR", "NCCL_MINOR", "NCCL_PATCH"});
  machine.cudnn = FindLibrary({root, wheels / "cudnn", "/usr"}, "libcudnn.so.9", "cudnn_version.h",
                              {"CUDNN_MAJOR", "CUDNN_MINOR", "CUDNN_PATCHLEVEL"});
  machine.gpu_driver = AskGpuDriver();
}

}  // namespace

Machine ProbeMachine(const std::string& cache) {
  Machine machine;
  ProbeSystem(machine);
  ProbeProcessors(machine);
  ProbeMemory(machine);
  ProbeTools(machine);
  ProbeLibTorch(machine);
  ProbeCuda(machine);
  machine.cache = ProbeFolder(cache);
  std::error_code error;
  machine.here = ProbeFolder(std::filesystem::current_path(error).string());
  machine.io_uring_errno = TryIoUring();
  machine.locked_memory_bytes = Limit(RLIMIT_MEMLOCK);
  machine.open_files = Limit(RLIMIT_NOFILE);
  return machine;
}

}  // namespace plumbline::conformance
