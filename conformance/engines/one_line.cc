// SPDX-License-Identifier: Apache-2.0
// Foreign text to one printable line.
#include "conformance/engines/one_line.h"

#include <cstdint>

namespace plumbline::conformance {
namespace {

// Length of the well-formed UTF-8 character at the beginning of text (Unicode 15, table 3-7), 0 if there is none.
size_t CharacterLength(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0}; };
  const auto within = [&](size_t i, uint8_t low, uint8_t high) { return byte(i) >= low && byte(i) <= high; };
  const uint8_t first = byte(0);
  if (first < 0x80) return text.empty() ? 0 : 1;
  if (first >= 0xC2 && first <= 0xDF) return within(1, 0x80, 0xBF) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const uint8_t low = first == 0xE0 ? 0xA0 : 0x80;
    const uint8_t high = first == 0xED ? 0x9F : 0xBF;  // no surrogates
    return within(1, low, high) && within(2, 0x80, 0xBF) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const uint8_t low = first == 0xF0 ? 0x90 : 0x80;
    const uint8_t high = first == 0xF4 ? 0x8F : 0xBF;  // at most U+10FFFF
    return within(1, low, high) && within(2, 0x80, 0xBF) && within(3, 0x80, 0xBF) ? 4 : 0;
  }
  return 0;
}

// Of three bytes from E2 80 or E2 81 or EF BB: whether it is one that shows nothing itself and turns, joins or hides
// what stands beside it (zero-width characters, embeddings and overrides of direction, word joiner, isolates, byte
// order mark).
bool IsUnseen(std::string_view character) {
  const auto last = static_cast<uint8_t>(character[2]);
  const std::string_view first = character.substr(0, 2);
  if (first == "\xE2\x80") return (last >= 0x8B && last <= 0x8F) || (last >= 0xA8 && last <= 0xAE);
  if (first == "\xE2\x81") return last >= 0xA0 && last <= 0xAF;
  return first == "\xEF\xBB" && last == 0xBF;
}

// White space, C0 and C1 controls, the Unicode line and paragraph separators, and what is unseen.
bool IsBlank(std::string_view character) {
  const auto first = static_cast<uint8_t>(character[0]);
  if (character.size() == 1) return first <= 0x20 || first == 0x7F;
  if (character.size() == 2) return first == 0xC2 && static_cast<uint8_t>(character[1]) <= 0xA0;
  return character.size() == 3 && IsUnseen(character);
}

}  // namespace

std::string OneLine(std::string_view text, size_t max_bytes) {
  constexpr std::string_view kCut = "...";
  std::string line;
  size_t cut_at = 0;  // the longest prefix of line, of whole characters, that leaves room for kCut
  bool blank_before = false;
  while (!text.empty()) {
    const size_t length = CharacterLength(text);
    std::string_view character = length == 0 ? std::string_view("?") : text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
    if (length != 0 && IsBlank(character)) {
      blank_before = true;
      continue;
    }
    if (blank_before && !line.empty()) line += ' ';
    blank_before = false;
    line += character;
    if (line.size() + kCut.size() <= max_bytes) cut_at = line.size();
    if (line.size() > max_bytes) {
      line.resize(cut_at);
      return line.append(kCut.substr(0, max_bytes - cut_at));
    }
  }
  return line;
}

std::string LastLine(std::string_view text, size_t max_bytes) {
  while (!text.empty()) {
    const size_t end_of_line = text.find_last_of('\n');
    const size_t begin = end_of_line == std::string_view::npos ? 0 : end_of_line + 1;
    const std::string line = OneLine(text.substr(begin), max_bytes);
    if (!line.empty()) return line;
    text = text.substr(0, end_of_line == std::string_view::npos ? 0 : end_of_line);
  }
  return "";
}

}  // namespace plumbline::conformance
