// SPDX-License-Identifier: Apache-2.0
// One defect for each sanitizer, chosen by the argument: heap (read behind the end), integer (overflow), race. Each is
// harmless where nobody looks, so the program then ends with 0.
#include <climits>
#include <cstdio>
#include <string_view>
#include <thread>
#include <vector>

namespace {

int shared_counter = 0;

int ReadBehindTheEnd(int argc) {
  const std::vector<int> three(3);
  const int* const first = three.data();
  return first[argc + 1];  // argc is 2
}

int Overflow(int argc) { return INT_MAX - 1 + argc; }

int Race() {
  std::thread other([] { ++shared_counter; });
  ++shared_counter;
  other.join();
  return shared_counter;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view defect = argc == 2 ? argv[1] : "";
  int result = 0;
  if (defect == "heap") {
    result = ReadBehindTheEnd(argc);
  } else if (defect == "integer") {
    result = Overflow(argc);
  } else if (defect == "race") {
    result = Race();
  } else {
    return 2;
  }
  std::printf("%d\n", result);  // or the defect would be optimised away
  return 0;
}
