// SPDX-License-Identifier: Apache-2.0
// What Linux, Debian and CUDA write about a machine, as values: pure functions from the text of a file or the output of
// a tool. Text that says nothing gives an empty value, never an error: a doctor must survive what it examines.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace plumbline::conformance {

// The value behind `key` and `separator` in the first line that has them, without quotes and outer blanks.
// Keys match whole: LookUp("model: 1\nmodel name: X", "model name", ':') is "X".
std::string LookUp(std::string_view text, std::string_view key, char separator);

// The words of one line, for example the flags of /proc/cpuinfo.
std::set<std::string> Words(std::string_view line);

// The leading unsigned integer of `text` behind blanks: "2048 kB" is 2048.
std::optional<uint64_t> LeadingNumber(std::string_view text);

// How many numbers a list of the kernel holds: "0-3,8" is 5, "" is 0. Ranges that no machine has are left out.
int CountList(std::string_view list);

// The word in brackets of a file of choices: "always [madvise] never" is "madvise".
std::string ChosenWord(std::string_view choices);

// Whether a kernel release such as "6.1.0-18-amd64" is at least major.minor.
bool KernelAtLeast(std::string_view release, uint64_t major, uint64_t minor);

// Limits of a control group, version 2: cpu.max ("150000 100000" is 1.5 cores) and memory.max; "max" is no limit.
std::optional<double> CoresOfCpuMax(std::string_view cpu_max);

// The version of an installed package in the text of dpkg's status file; empty if it is not installed.
std::string InstalledVersion(std::string_view dpkg_status, std::string_view package);

// `#define NAME VALUE` in a header; quotes are removed.
std::string Define(std::string_view header, std::string_view name);

// The version in the full name of a shared library: "libcudnn.so.9.13.0" is "9.13.0"; empty if it has none.
std::string SharedObjectVersion(std::string_view file_name);

// "release 13.0, V13.0.88" in the output of `nvcc --version` is "13.0.88".
std::string NvccVersion(std::string_view output);

// 13000 is "13.0": the form of CUDA_VERSION and of the driver.
std::string CudaVersion(uint64_t number);

}  // namespace plumbline::conformance
