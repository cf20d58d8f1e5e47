// SPDX-License-Identifier: Apache-2.0
// The texts are cut from real machines.
#include "conformance/environment/machine_text.h"

#include <gtest/gtest.h>

namespace plumbline::conformance {
namespace {

TEST(LookUp, FindsKeysOfEachStyle) {
  EXPECT_EQ(LookUp("NAME=\"Debian GNU/Linux\"\nVERSION_ID=\"12\"\nID=debian\n", "VERSION_ID", '='), "12");
  EXPECT_EQ(LookUp("NAME=\"Debian GNU/Linux\"\nVERSION_ID=\"12\"\nID=debian\n", "ID", '='), "debian");
  EXPECT_EQ(LookUp("MemTotal:       24593276 kB\nMemFree: 1 kB", "MemTotal", ':'), "24593276 kB");
}

TEST(LookUp, TakesWholeKeysOnly) {
  const char* const text = "model\t\t: 17\nmodel name\t: AMD EPYC\n";
  EXPECT_EQ(LookUp(text, "model", ':'), "17");
  EXPECT_EQ(LookUp(text, "model name", ':'), "AMD EPYC");
  EXPECT_EQ(LookUp(text, "name", ':'), "");
}

TEST(LookUp, IsEmptyForTextThatSaysNothing) {
  for (const char* text : {"", "\n", ":", "flags", "flags:", "flags\t:\n"}) EXPECT_EQ(LookUp(text, "flags", ':'), "");
}

TEST(LookUp, KeepsSeparatorsInTheValue) { EXPECT_EQ(LookUp("Version: 1:2.3-4", "Version", ':'), "1:2.3-4"); }

TEST(Words, SplitsAtAnyNumberOfBlanks) {
  EXPECT_EQ(Words("  avx2 fma  amx_bf16 "), (std::set<std::string>{"amx_bf16", "avx2", "fma"}));
  EXPECT_TRUE(Words("").empty());
}

TEST(LeadingNumber, StopsWhereTheNumberEnds) {
  EXPECT_EQ(LeadingNumber(" 2048 kB"), 2048u);
  EXPECT_EQ(LeadingNumber("18446744073709551615"), 18446744073709551615u);
  EXPECT_EQ(LeadingNumber("18446744073709551616"), std::nullopt);
  EXPECT_EQ(LeadingNumber("-1"), std::nullopt);
  EXPECT_EQ(LeadingNumber("max"), std::nullopt);
  EXPECT_EQ(LeadingNumber(""), std::nullopt);
}

TEST(CountList, CountsRangesAndSingles) {
  EXPECT_EQ(CountList("0\n"), 1);
  EXPECT_EQ(CountList("0-1\n"), 2);
  EXPECT_EQ(CountList("0-3,8,10-11"), 7);
  EXPECT_EQ(CountList(""), 0);
  EXPECT_EQ(CountList("3-1"), 0);
}

TEST(CountList, CountsNoRangeThatNoMachineHas) {
  EXPECT_EQ(CountList("0-2147483647"), 0);
  EXPECT_EQ(CountList("0-2147483646,5,0-2147483646"), 1);
  EXPECT_EQ(CountList("0-18446744073709551615"), 0);
}

TEST(ChosenWord, IsTheOneInBrackets) {
  EXPECT_EQ(ChosenWord("always [madvise] never\n"), "madvise");
  EXPECT_EQ(ChosenWord("none chosen"), "");
  EXPECT_EQ(ChosenWord(""), "");
}

TEST(KernelAtLeast, ComparesNumbersNotText) {
  EXPECT_TRUE(KernelAtLeast("6.18.44-fc-v669", 5, 3));
  EXPECT_TRUE(KernelAtLeast("5.10.0-28-amd64", 5, 3));
  EXPECT_TRUE(KernelAtLeast("5.3", 5, 3));
  EXPECT_FALSE(KernelAtLeast("5.2.21", 5, 3));
  EXPECT_FALSE(KernelAtLeast("4.19.0", 5, 3));
  EXPECT_FALSE(KernelAtLeast("", 5, 3));
}

TEST(CoresOfCpuMax, IsQuotaOverPeriod) {
  EXPECT_EQ(CoresOfCpuMax("150000 100000\n"), 1.5);
  EXPECT_EQ(CoresOfCpuMax("max 100000\n"), std::nullopt);
  EXPECT_EQ(CoresOfCpuMax("1 0"), std::nullopt);
  EXPECT_EQ(CoresOfCpuMax(""), std::nullopt);
}

TEST(InstalledVersion, IsOfTheVeryPackage) {
  const char* const status =
      "Package: bazel-bootstrap-data\nStatus: install ok installed\nVersion: 1\n\n"
      "Package: bazel-bootstrap\nStatus: install ok installed\nVersion: 4.2.3+ds-9\nDescription: a tool\n more\n\n"
      "Package: removed\nStatus: deinstall ok config-files\nVersion: 3\n";
  EXPECT_EQ(InstalledVersion(status, "bazel-bootstrap"), "4.2.3+ds-9");
  EXPECT_EQ(InstalledVersion(status, "removed"), "");
  EXPECT_EQ(InstalledVersion(status, "absent"), "");
  EXPECT_EQ(InstalledVersion("", "absent"), "");
}

TEST(Define, IsOfTheVeryName) {
  const char* const header =
      "#ifndef A\n#define TORCH_VERSION_MAJOR 2\n#define TORCH_VERSION \"2.11.0\"\n"
      "#define NCCL_MAJOR   2\n  #define X\n";
  EXPECT_EQ(Define(header, "TORCH_VERSION"), "2.11.0");
  EXPECT_EQ(Define(header, "NCCL_MAJOR"), "2");
  EXPECT_EQ(Define(header, "X"), "");
  EXPECT_EQ(Define(header, "Y"), "");
}

TEST(SharedObjectVersion, IsBehindTheSo) {
  EXPECT_EQ(SharedObjectVersion("libcudnn.so.9.13.0"), "9.13.0");
  EXPECT_EQ(SharedObjectVersion("libnccl.so.2"), "2");
  EXPECT_EQ(SharedObjectVersion("libnccl.so"), "");
}

TEST(NvccVersion, IsBehindTheRelease) {
  EXPECT_EQ(NvccVersion("nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release 13.0, V13.0.88\nBuild"),
            "13.0.88");
  EXPECT_EQ(NvccVersion("sh: 1: nvcc: not found"), "");
}

TEST(CudaVersion, HasMajorAndMinor) {
  EXPECT_EQ(CudaVersion(13000), "13.0");
  EXPECT_EQ(CudaVersion(12080), "12.8");
}

}  // namespace
}  // namespace plumbline::conformance
