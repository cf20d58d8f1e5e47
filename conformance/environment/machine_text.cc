// SPDX-License-Identifier: Apache-2.0
#include "conformance/environment/machine_text.h"

#include <charconv>
#include <climits>

namespace plumbline::conformance {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

// Cuts the part up to the next `end` off `text` and returns it.
std::string_view Cut(std::string_view& text, char end) {
  const size_t at = text.find(end);
  const std::string_view part = text.substr(0, at);
  text = at == std::string_view::npos ? std::string_view{} : text.substr(at + 1);
  return part;
}

std::string_view WithoutQuotes(std::string_view text) {
  const bool quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
  return quoted ? text.substr(1, text.size() - 2) : text;
}

}  // namespace

std::string LookUp(std::string_view text, std::string_view key, char separator) {
  while (!text.empty()) {
    std::string_view line = Cut(text, '\n');
    if (line.find(separator) == std::string_view::npos) continue;
    if (Trim(Cut(line, separator)) == key) return std::string(WithoutQuotes(Trim(line)));
  }
  return "";
}

std::set<std::string> Words(std::string_view line) {
  std::set<std::string> words;
  while (!line.empty()) {
    const std::string_view word = Trim(Cut(line, ' '));
    if (!word.empty()) words.emplace(word);
  }
  return words;
}

std::optional<uint64_t> LeadingNumber(std::string_view text) {
  text = Trim(text);
  uint64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc()) return std::nullopt;
  return number;
}

int CountList(std::string_view list) {
  constexpr uint64_t kMostInARange = 1 << 16;  // beyond what a kernel counts, and texts have few ranges
  int count = 0;
  while (!list.empty()) {
    std::string_view last = Trim(Cut(list, ','));
    const auto from = LeadingNumber(Cut(last, '-'));
    if (!from) continue;
    const uint64_t to = LeadingNumber(last).value_or(*from);
    if (to >= *from && to - *from < kMostInARange && count < INT_MAX / 2) count += static_cast<int>(to - *from + 1);
  }
  return count;
}

std::string ChosenWord(std::string_view choices) {
  Cut(choices, '[');
  return std::string(Cut(choices, ']'));
}

bool KernelAtLeast(std::string_view release, uint64_t major, uint64_t minor) {
  const uint64_t found_major = LeadingNumber(Cut(release, '.')).value_or(0);
  const uint64_t found_minor = LeadingNumber(release).value_or(0);
  return found_major > major || (found_major == major && found_minor >= minor);
}

std::optional<double> CoresOfCpuMax(std::string_view cpu_max) {
  const auto quota = LeadingNumber(Cut(cpu_max, ' '));
  const auto period = LeadingNumber(cpu_max);
  if (!quota || !period || *period == 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

std::string InstalledVersion(std::string_view dpkg_status, std::string_view package) {
  constexpr std::string_view kBetween = "\n\n";
  while (!dpkg_status.empty()) {
    const size_t end = dpkg_status.find(kBetween);
    const std::string_view entry = dpkg_status.substr(0, end);
    if (LookUp(entry, "Package", ':') == package) {
      return LookUp(entry, "Status", ':').ends_with(" installed") ? LookUp(entry, "Version", ':') : "";
    }
    dpkg_status = end == std::string_view::npos ? std::string_view{} : dpkg_status.substr(end + kBetween.size());
  }
  return "";
}

std::string Define(std::string_view header, std::string_view name) {
  while (!header.empty()) {
    std::string_view line = Trim(Cut(header, '\n'));
    if (Cut(line, ' ') != "#define") continue;
    line = Trim(line);
    if (Cut(line, ' ') == name) return std::string(WithoutQuotes(Trim(line)));
  }
  return "";
}

std::string SharedObjectVersion(std::string_view file_name) {
  constexpr std::string_view kBefore = ".so.";
  const size_t at = file_name.find(kBefore);
  return at == std::string_view::npos ? "" : std::string(file_name.substr(at + kBefore.size()));
}

std::string NvccVersion(std::string_view output) {
  constexpr std::string_view kBefore = ", V";
  const size_t at = output.find(kBefore);
  if (at == std::string_view::npos) return "";
  output.remove_prefix(at + kBefore.size());
  return std::string(output.substr(0, output.find_first_not_of("0123456789.")));
}

std::string CudaVersion(uint64_t number) {
  constexpr uint64_t kMajor = 1000;
  constexpr uint64_t kMinor = 10;
  return std::to_string(number / kMajor) + "." + std::to_string(number % kMajor / kMinor);
}

}  // namespace plumbline::conformance
