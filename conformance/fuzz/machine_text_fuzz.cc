// SPDX-License-Identifier: Apache-2.0
// Fuzz target: what Linux, Debian and CUDA write about a machine, as the doctor reads it. Text that says nothing gives
// an empty value and never an error.
#include "conformance/contract/fuzz/only_errors.h"
#include "conformance/environment/machine_text.h"

namespace plumbline::contract::fuzz {

bool Accepts(const uint8_t* data, size_t size) {
  using namespace conformance;  // NOLINT: everything that machine_text.h has
  const std::string_view text = Text(data, size);
  for (const char separator : {':', '='}) {
    const std::string value = LookUp(text, "model name", separator);
    Demand(value.find('\n') == std::string::npos, "a value is one line");
  }
  for (const std::string& word : Words(text)) Demand(!word.empty() && word.size() <= size, "words are words");
  Demand(CountList(text) >= 0, "a list holds no less than nothing");
  Demand(ChosenWord(text).size() <= size, "a word of the text");
  KernelAtLeast(text, 5, 19);
  const auto cores = CoresOfCpuMax(text);
  Demand(!cores || *cores >= 0, "no less than no core");
  Demand(InstalledVersion(text, "libc6").size() <= size, "a version of the text");
  Demand(Define(text, "CUDNN_MAJOR").size() <= size, "a value of the text");
  SharedObjectVersion(text);
  NvccVersion(text);
  const auto number = LeadingNumber(text);
  if (number) Demand(!CudaVersion(*number).empty(), "a version has digits");
  return number.has_value();
}

}  // namespace plumbline::contract::fuzz
