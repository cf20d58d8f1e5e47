// SPDX-License-Identifier: Apache-2.0
// Reading JSON that strangers wrote: every access checks type and range and fails with one line that names the file,
// the path of the field, its value and what is allowed. Duplicate keys and nesting beyond 64 levels are errors. Parsing
// itself is nlohmann-json's, which stays inside the .cc file.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plumbline::contract {

class JsonValue {
 public:
  enum class Comments { kForbidden, kAllowed };

  // `where` begins each message, usually the file's name.
  static JsonValue Parse(std::string_view text, std::string_view where, Comments comments = Comments::kForbidden);

  // Objects. Of a key that is not there At() gives a value that is refused as missing where it is read, so that the
  // message says what is allowed; Find() gives none. AllowOnly() rejects other keys and names the nearest allowed one,
  // or all of them. also_known: let pass and suggested too, but not called allowed; the caller has words of its own for
  // them.
  JsonValue At(std::string_view key) const;
  std::optional<JsonValue> Find(std::string_view key) const;
  std::vector<std::string> Keys() const;
  void AllowOnly(std::span<const std::string_view> keys, std::span<const std::string_view> also_known = {}) const;
  void AllowOnly(std::initializer_list<std::string_view> keys) const;

  // Arrays.
  size_t Size() const;
  JsonValue operator[](size_t index) const;

  // Scalars. Int() accepts integers only (3.0 is not one).
  int64_t Int(int64_t min = std::numeric_limits<int64_t>::min(),
              int64_t max = std::numeric_limits<int64_t>::max()) const;
  // Int(), which may also be written with point or exponent: 5e8, 8.0. Above 2^53 integers only, since a float there
  // may have been another number.
  int64_t Count(int64_t min, int64_t max) const;
  uint64_t UInt64() const;
  double Number() const;  // finite
  bool Bool() const;
  std::string String() const;
  // At most max_bytes bytes, and no control characters: a name that strangers chose and reports repeat.
  std::string Name(size_t max_bytes) const;
  // The index of the string in `allowed`.
  size_t OneOf(std::span<const std::string_view> allowed) const;
  size_t OneOf(std::initializer_list<std::string_view> allowed) const;

  bool IsString() const;
  bool IsNumber() const;
  bool IsObject() const;
  bool IsNull() const;
  // Whether it is the value of this JSON text; numbers are compared as numbers, so 1.0 is 1.
  bool Equals(std::string_view json) const;

  // "case.json: model.width"
  std::string Path() const;
  // JSON text for messages: at most some sixty bytes of it.
  std::string Shown() const;
  // Throws InvalidArgument "PATH is VALUE; allowed: ALLOWED", or "PATH is missing; allowed: ALLOWED".
  [[noreturn]] void Reject(std::string_view allowed) const;

 private:
  struct Document;
  struct PathNode;
  JsonValue(std::shared_ptr<const Document> document, const void* node, std::shared_ptr<const PathNode> path);

  std::shared_ptr<const Document> document_;
  const void* node_;
  std::shared_ptr<const PathNode> path_;
};

// `text` as a JSON string literal, with quotes. Invalid UTF-8 becomes U+FFFD.
std::string JsonQuote(std::string_view text);

// The shortest decimal form that reads back as the same finite double; integers up to 2^53 as integers.
std::string JsonNumber(double value);

// The element of `known` with the smallest edit distance to `word`, if that is at most a third of its length plus one.
std::optional<std::string_view> Nearest(std::string_view word, std::span<const std::string_view> known);

}  // namespace plumbline::contract
