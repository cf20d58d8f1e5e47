// SPDX-License-Identifier: Apache-2.0
//
// The short, repeatable half of fuzzing: runs LLVMFuzzerTestOneInput on every corpus file, on the empty input, and on
// seeded mutations of them, with any compiler. It is no search (it measures no coverage): libFuzzer links the same
// function for that.
//
//   fuzz_test [--mutations=N] [--seed=S] CORPUS_FILE...
//
// The input in hand is written to $TEST_TMPDIR/input-in-hand when the process dies, so that a crash can be run again.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t kMaxBytes = 1 << 16;

// SplitMix64 (Steele, Lea, Flood 2014): its sequence is the same everywhere, which std::*_distribution's is not.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t Next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  std::size_t Below(std::size_t bound) { return bound == 0 ? 0 : Next() % bound; }

 private:
  std::uint64_t state_;
};

// Read by the signal handler: the input that the function is working on, and where to leave it.
const Bytes* input_in_hand = nullptr;
std::string crash_path;

void LeaveInput() {
  if (input_in_hand == nullptr) return;
  const int file = open(crash_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file < 0) return;
  const bool written = write(file, input_in_hand->data(), input_in_hand->size()) >= 0;
  close(file);
  constexpr std::string_view kSaid = "the input in hand is in ";
  if (!written || write(2, kSaid.data(), kSaid.size()) < 0 || write(2, crash_path.data(), crash_path.size()) < 0 ||
      write(2, "\n", 1) < 0) {
    return;
  }
}

void OnSignal(int signal) {
  LeaveInput();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void Run(const Bytes& input) {
  input_in_hand = &input;
  // A copy of exactly this size, so that a sanitizer sees a read beyond the end.
  const Bytes exact(input);
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
  input_in_hand = nullptr;
}

// Bytes that end numbers, strings and lengths in the formats that are read here.
constexpr std::uint8_t kTelling[] = {0x00, 0x01, 0x7f, 0x80, 0xff, '"', '\\', '{',
                                     '}',  '[',  ']',  ',',  ':',  '-', '9',  'e'};
constexpr std::string_view kWords[] = {
    "null", "-1", "1e999", "18446744073709551616", "9223372036854775807", "\\u0000", "\"\":", "[[[[", "{\"a\":"};

void MutateOnce(Bytes& input, const std::vector<Bytes>& corpus, Random& random) {
  const std::size_t at = random.Below(input.size() + 1);
  const auto place = input.begin() + static_cast<std::ptrdiff_t>(at);
  const std::size_t rest = input.size() - at;
  switch (random.Below(8)) {
    case 0:  // flip a bit
      if (rest > 0) *place ^= static_cast<std::uint8_t>(1u << random.Below(8));
      break;
    case 1:  // a telling byte for another
      if (rest > 0) *place = kTelling[random.Below(std::size(kTelling))];
      break;
    case 2:
      input.insert(place, kTelling[random.Below(std::size(kTelling))]);
      break;
    case 3: {
      const std::string_view word = kWords[random.Below(std::size(kWords))];
      input.insert(place, word.begin(), word.end());
      break;
    }
    case 4:  // remove a piece
      input.erase(place, place + static_cast<std::ptrdiff_t>(random.Below(std::min<std::size_t>(rest, 32) + 1)));
      break;
    case 5:  // cut the end off
      input.resize(at);
      break;
    case 6: {  // say a piece twice
      const Bytes piece(place, place + static_cast<std::ptrdiff_t>(random.Below(std::min<std::size_t>(rest, 64) + 1)));
      input.insert(input.begin() + static_cast<std::ptrdiff_t>(random.Below(input.size() + 1)), piece.begin(),
                   piece.end());
      break;
    }
    default: {  // go on as another file of the corpus does
      const Bytes& other = corpus[random.Below(corpus.size())];
      input.resize(at);
      input.insert(input.end(), other.begin() + static_cast<std::ptrdiff_t>(random.Below(other.size() + 1)),
                   other.end());
    }
  }
  if (input.size() > kMaxBytes) input.resize(kMaxBytes);
}

Bytes Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "cannot read the corpus file %s\n", path.c_str());
    std::exit(2);
  }
  return Bytes(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

void RunAll(const std::vector<Bytes>& corpus, std::uint64_t mutations, std::uint64_t seed) {
  for (const Bytes& input : corpus) Run(input);
  Random random(seed);
  for (std::uint64_t i = 0; i < mutations; ++i) {
    Bytes input = corpus[random.Below(corpus.size())];
    const std::size_t times = 1 + random.Below(4);
    for (std::size_t k = 0; k < times; ++k) MutateOnce(input, corpus, random);
    Run(input);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t mutations = 20000, seed = 1;
  std::vector<Bytes> corpus(1);  // the empty input is always one
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.starts_with("--mutations=")) {
      mutations = std::strtoull(argument.c_str() + 12, nullptr, 10);
    } else if (argument.starts_with("--seed=")) {
      seed = std::strtoull(argument.c_str() + 7, nullptr, 10);
    } else {
      corpus.push_back(Read(argument));
    }
  }
  const char* folder = std::getenv("TEST_TMPDIR");
  crash_path = std::string(folder == nullptr ? "." : folder) + "/input-in-hand";
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTERM}) std::signal(signal, OnSignal);
  try {
    RunAll(corpus, mutations, seed);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "an exception left LLVMFuzzerTestOneInput: %s\n", error.what());
    std::abort();
  }
  std::printf("%zu inputs and %llu mutations (seed %llu)\n", corpus.size(), static_cast<unsigned long long>(mutations),
              static_cast<unsigned long long>(seed));
  return 0;
}
