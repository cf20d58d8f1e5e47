// SPDX-License-Identifier: Apache-2.0
// Each rule on a machine that lacks nothing but the part in question.
#include "conformance/environment/diagnosis.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <functional>

namespace plumbline::conformance {
namespace {

constexpr uint64_t kGib = uint64_t{1} << 30;

Gpu WholeGpu() {
  return {.name = "NVIDIA H200",
          .memory_bytes = 140 * kGib,
          .compute_capability = "9.0",
          .mig = false,
          .persistence = true,
          .ecc = true,
          .clock_mhz = 1980,
          .clock_max_mhz = 1980};
}

Machine WholeMachine() {
  Machine machine;
  machine.os_name = "Debian GNU/Linux 12 (bookworm)";
  machine.os_id = "debian";
  machine.os_version = "12";
  machine.kernel = "6.1.0-18-amd64";
  machine.architecture = "x86_64";
  machine.cpu_model = "Some CPU";
  machine.cpu_flags = {"avx2", "avx512_bf16", "sse2"};
  machine.cores = 2;
  machine.cores_usable = 2;
  machine.cpu_clock_khz = 2'600'000;
  machine.memory_bytes = 23 * kGib;
  machine.numa_nodes = 1;
  machine.compiler_built = "12.2.0";
  machine.compiler_found = "12.2.0";
  machine.bazel_package = "4.2.3+ds-9";
  machine.engines = {{"reference", ""}, {"optimized", ""}};
  machine.libtorch_root = "/somewhere/torch";
  machine.libtorch_version = "2.11.0";
  machine.libtorch_found = true;
  machine.cuda_root = "/usr/local/cuda";
  machine.nvcc_version = "13.0.88";
  machine.cuda_headers = "13.0";
  machine.nccl = FoundLibrary{"/usr/local/cuda/lib64/libnccl.so.2", "2.28.9"};
  machine.cudnn = FoundLibrary{"/usr/local/cuda/lib64/libcudnn.so.9", "9.19.0"};
  machine.gpu_driver = {.version = "580.65.06", .cuda_version = "13.0", .gpus = {WholeGpu()}};
  machine.cache = {"/home/me/.cache/plumbline", true, 100 * kGib};
  machine.here = {"/home/me/work", true, 100 * kGib};
  machine.transparent_huge_pages = "madvise";
  return machine;
}

Finding Find(const Machine& machine, const std::string& id) {
  for (const Finding& finding : Diagnose(machine)) {
    if (finding.id == id) return finding;
  }
  ADD_FAILURE() << "no finding " << id;
  return {};
}

TEST(Diagnose, FindsNothingWrongWithAWholeMachine) {
  const auto findings = Diagnose(WholeMachine());
  for (const Finding& finding : findings) {
    EXPECT_EQ(finding.state, State::kOk) << finding.id << ": " << finding.value;
    EXPECT_EQ(finding.disables, "") << finding.id;
    EXPECT_NE(finding.value, "") << finding.id;
  }
  EXPECT_TRUE(CanVerify(findings));
}

struct Lack {
  const char* id;
  State state;
  bool can_verify;
  const char* value;     // a part of it
  const char* disables;  // a part of it
  std::function<void(Machine&)> take_away;
};

const Lack kLacks[] = {
    {"os", State::kWeak, true, "Ubuntu", "set-up", [](Machine& m) { m.os_id = "ubuntu", m.os_name = "Ubuntu 24.04"; }},
    {"os", State::kWeak, true, "aarch64", "x86_64", [](Machine& m) { m.architecture = "aarch64"; }},
    {"kernel", State::kMissing, false, "4.19.0", "pidfd_open", [](Machine& m) { m.kernel = "4.19.0"; }},
    {"cpu", State::kWeak, true, "1.5 of 2", "speed", [](Machine& m) { m.cores_usable = 1.5; }},
    {"instruction_sets", State::kWeak, true, "avx2", "bf16", [](Machine& m) { m.cpu_flags = {"avx2"}; }},
    {"instruction_sets", State::kWeak, true, "none", "avx2", [](Machine& m) { m.cpu_flags = {}; }},
    {"memory", State::kWeak, true, "1 GiB", "building", [](Machine& m) { m.memory_bytes = kGib; }},
    {"memory", State::kWeak, true, "unknown", "building", [](Machine& m) { m.memory_bytes.reset(); }},
    {"numa", State::kWeak, true, "unknown", "performance", [](Machine& m) { m.numa_nodes = 0; }},
    {"compiler", State::kMissing, true, "found none", "building", [](Machine& m) { m.compiler_found = ""; }},
    {"compiler", State::kWeak, true, "gcc 9.4.0", "building", [](Machine& m) { m.compiler_found = "9.4.0"; }},
    {"bazel", State::kMissing, true, "none", "test", [](Machine& m) { m.bazel_package = ""; }},
    {"libtorch", State::kMissing, false, "not in /somewhere", "verify", [](Machine& m) { m.libtorch_found = false; }},
    {"engines", State::kMissing, false, "optimized (killed by SIGSEGV)", "verify",
     [](Machine& m) { m.engines[1].error = "killed by SIGSEGV"; }},
    {"engines", State::kMissing, false, "none", "verify", [](Machine& m) { m.engines.clear(); }},
    {"cuda_toolkit", State::kMissing, true, "none in /usr/local/cuda", "GPU code",
     [](Machine& m) { m.nvcc_version = m.cuda_headers = ""; }},
    {"cuda_toolkit", State::kWeak, true, "nvcc none, headers 13.0", "GPU code",
     [](Machine& m) { m.nvcc_version = ""; }},
    {"gpu_driver", State::kMissing, true, "no driver: why", "NOT_RUN",
     [](Machine& m) { m.gpu_driver = {.absent = "why"}; }},
    {"gpu_driver", State::kMissing, true, "0 GPUs", "NOT_RUN", [](Machine& m) { m.gpu_driver.gpus.clear(); }},
    {"gpu0", State::kWeak, true, "8.0", "9.0", [](Machine& m) { m.gpu_driver.gpus[0].compute_capability = "8.0"; }},
    {"gpu0", State::kWeak, true, "MIG on", "slices", [](Machine& m) { m.gpu_driver.gpus[0].mig = true; }},
    {"gpu0", State::kWeak, true, "ECC off", "memory errors", [](Machine& m) { m.gpu_driver.gpus[0].ecc = false; }},
    {"gpu0", State::kWeak, true, "persistence off", "starts",
     [](Machine& m) { m.gpu_driver.gpus[0].persistence = false; }},
    {"gpu0", State::kWeak, true, "clock unknown", "clocks", [](Machine& m) { m.gpu_driver.gpus[0].clock_mhz.reset(); }},
    {"gpu0", State::kWeak, true, "tells nothing", "9.0", [](Machine& m) { m.gpu_driver.gpus[0] = {}; }},
    {"nccl", State::kMissing, true, "none", "between GPUs", [](Machine& m) { m.nccl.reset(); }},
    {"cudnn", State::kMissing, true, "none", "attention", [](Machine& m) { m.cudnn.reset(); }},
    {"disk_cache", State::kWeak, true, "1 GiB free", "builds", [](Machine& m) { m.cache.free_bytes = kGib; }},
    {"disk_cache", State::kWeak, true, "cannot be written", "builds", [](Machine& m) { m.cache.writable = false; }},
    {"disk_here", State::kWeak, true, "512 MiB", "results", [](Machine& m) { m.here.free_bytes = kGib / 2; }},
    {"disk_here", State::kMissing, false, "64 MiB", "verify", [](Machine& m) { m.here.free_bytes = kGib / 16; }},
    {"disk_here", State::kMissing, false, "cannot be written", "verify", [](Machine& m) { m.here.writable = false; }},
    {"disk_here", State::kMissing, false, "unknown", "verify", [](Machine& m) { m.here.free_bytes.reset(); }},
    {"io_uring", State::kMissing, true, "not implemented", "NVMe", [](Machine& m) { m.io_uring_errno = ENOSYS; }},
    {"locked_memory", State::kWeak, true, "8 MiB", "io_uring", [](Machine& m) { m.locked_memory_bytes = kGib / 128; }},
    {"locked_memory", State::kWeak, true, "64 KiB", "io_uring", [](Machine& m) { m.locked_memory_bytes = 65536; }},
    {"open_files", State::kWeak, true, "256", "--jobs", [](Machine& m) { m.open_files = 256; }},
    {"huge_pages", State::kWeak, true, "never", "speed", [](Machine& m) { m.transparent_huge_pages = "never"; }},
    {"cpu_clock", State::kWeak, true, "not readable", "records", [](Machine& m) { m.cpu_clock_khz.reset(); }},
};

TEST(Diagnose, NamesWhatEachLackDisablesAndFindsNothingElse) {
  for (const Lack& lack : kLacks) {
    Machine machine = WholeMachine();
    lack.take_away(machine);
    const Finding finding = Find(machine, lack.id);
    SCOPED_TRACE(finding.id + ": " + finding.value + "; " + finding.disables);
    EXPECT_EQ(Name(finding.state), Name(lack.state));
    EXPECT_NE(finding.value.find(lack.value), std::string::npos) << lack.value;
    EXPECT_NE(finding.disables.find(lack.disables), std::string::npos) << lack.disables;
    const auto findings = Diagnose(machine);
    EXPECT_EQ(CanVerify(findings), lack.can_verify);
    EXPECT_EQ(std::count_if(findings.begin(), findings.end(), [](const Finding& f) { return f.state != State::kOk; }),
              1);
  }
}

TEST(Diagnose, HasALackForEachFinding) {
  for (const Finding& finding : Diagnose(WholeMachine())) {
    EXPECT_TRUE(std::any_of(std::begin(kLacks), std::end(kLacks), [&](const Lack& lack) {
      return finding.id == lack.id;
    })) << finding.id;
  }
}

TEST(Diagnose, ShowsEachGpu) {
  Machine machine = WholeMachine();
  machine.gpu_driver.gpus.push_back(WholeGpu());
  machine.gpu_driver.gpus[1].mig = true;
  machine.gpu_driver.gpus[1].ecc = false;
  EXPECT_EQ(Find(machine, "gpu0").value,
            "NVIDIA H200, 140 GiB, compute capability 9.0, MIG off, persistence on, ECC on, clock 1980 of 1980 MHz");
  EXPECT_NE(Find(machine, "gpu1").disables.find("; "), std::string::npos) << "both weaknesses";
}

TEST(Diagnose, SurvivesAMachineThatTellsNothing) {
  for (const Finding& finding : Diagnose(Machine{})) {
    EXPECT_NE(finding.value, "") << finding.id;
    EXPECT_EQ(finding.state == State::kOk, finding.disables.empty()) << finding.id;
  }
}

TEST(Diagnose, GivesEachFindingOneLine) {
  for (const Machine& machine : {WholeMachine(), Machine{}}) {
    for (const Finding& finding : Diagnose(machine)) {
      EXPECT_EQ((finding.value + finding.disables).find('\n'), std::string::npos) << finding.id;
    }
  }
}

}  // namespace
}  // namespace plumbline::conformance
