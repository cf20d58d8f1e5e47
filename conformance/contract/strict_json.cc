// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/strict_json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "conformance/contract/error.h"

namespace plumbline::contract {
namespace {

using Node = nlohmann::json;

constexpr int kMaxDepth = 64;
constexpr size_t kMaxShownChars = 60;

const Node& AsNode(const void* node) { return *static_cast<const Node*>(node); }

std::string ShownNode(const Node& node) {
  std::string text = node.dump(-1, ' ', false, Node::error_handler_t::replace);
  if (text.size() > kMaxShownChars) {
    size_t cut = kMaxShownChars;
    while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) --cut;  // not inside a character
    text = text.substr(0, cut) + "...";
  }
  return text;
}

std::string Position(std::string_view text, size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte > 0 ? byte - 1 : 0, text.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t line_start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  return "line " + std::to_string(line) + ", column " + std::to_string(before.size() - line_start + 1);
}

// A key as part of a path: as it is, unless that would break the line, swell it or read like an index.
std::string ShownKey(const std::string& key) {
  const bool plain = !key.empty() && key.size() <= kMaxShownChars && key.front() != '[' &&
                     std::none_of(key.begin(), key.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; });
  return plain ? key : ShownNode(Node(key));
}

// Rejects what nlohmann-json would silently accept: duplicate keys and unbounded nesting.
class Guard {
 public:
  explicit Guard(std::string_view where) : where_(where) {}

  bool operator()(int depth, Node::parse_event_t event, Node& parsed) {
    if (event == Node::parse_event_t::object_start || event == Node::parse_event_t::array_start) {
      if (depth >= kMaxDepth) {
        Fail(ErrorCode::kInvalidArgument,
             where_ + ": JSON is nested deeper than " + std::to_string(kMaxDepth) + " levels");
      }
    }
    if (event == Node::parse_event_t::object_start) keys_.emplace_back();
    if (event == Node::parse_event_t::object_end) keys_.pop_back();
    if (event == Node::parse_event_t::key && !keys_.back().insert(parsed.get<std::string>()).second) {
      Fail(ErrorCode::kInvalidArgument, where_ + ": key " + ShownNode(parsed) + " occurs twice; once is allowed");
    }
    return true;
  }

 private:
  std::string where_;
  std::vector<std::set<std::string>> keys_;
};

// 5e8 where 500000000 is allowed. Beyond 2^53 it may have been another number.
bool IsWholeFloat(const Node& node, int64_t min, int64_t max) {
  constexpr double kMaxExact = 9007199254740992.0;  // 2^53
  if (!node.is_number_float()) return false;
  const auto value = node.get<double>();
  if (value != std::floor(value) || std::abs(value) > kMaxExact) return false;
  return static_cast<int64_t>(value) >= min && static_cast<int64_t>(value) <= max;
}

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({substituted, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

std::string Join(std::span<const std::string_view> words) {
  std::string joined;
  for (std::string_view word : words) {
    if (!joined.empty()) joined += ", ";
    joined += word;
  }
  return joined;
}

}  // namespace

struct JsonValue::Document {
  Node root;
};

struct JsonValue::PathNode {
  enum class Kind { kRoot, kKey, kIndex };
  std::shared_ptr<const PathNode> parent;
  Kind kind;
  std::string name;  // the file for the root, a key or an index below it
};

JsonValue::JsonValue(std::shared_ptr<const Document> document, const void* node, std::shared_ptr<const PathNode> path)
    : document_(std::move(document)), node_(node), path_(std::move(path)) {}

JsonValue JsonValue::Parse(std::string_view text, std::string_view where, Comments comments) {
  // nlohmann-json takes a NUL byte for the end of the text and would not read what follows.
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos) {
    Fail(ErrorCode::kInvalidArgument, std::string(where) + ": not valid JSON at " + Position(text, nul + 1));
  }
  auto document = std::make_shared<Document>();
  try {
    document->root = Node::parse(text.begin(), text.end(), Guard(where), true, comments == Comments::kAllowed);
  } catch (const Node::parse_error& error) {
    const bool empty = text.find_first_not_of(" \t\r\n") == std::string_view::npos;
    Fail(ErrorCode::kInvalidArgument,
         std::string(where) +
             (empty ? ": is empty; a JSON value is expected" : ": not valid JSON at " + Position(text, error.byte)));
  } catch (const Node::out_of_range&) {  // a number beyond double
    Fail(ErrorCode::kInvalidArgument,
         std::string(where) + ": a number is out of range; allowed: up to 1.7976931348623157e308");
  }
  const void* root = &document->root;
  return JsonValue(std::move(document), root,
                   std::make_shared<PathNode>(PathNode{nullptr, PathNode::Kind::kRoot, std::string(where)}));
}

std::optional<JsonValue> JsonValue::Find(std::string_view key) const {
  const Node& node = AsNode(node_);
  if (!node.is_object()) Reject("an object");
  const auto found = node.find(key);
  if (found == node.end()) return std::nullopt;
  return JsonValue(document_, &*found,
                   std::make_shared<PathNode>(PathNode{path_, PathNode::Kind::kKey, std::string(key)}));
}

JsonValue JsonValue::At(std::string_view key) const {
  // A missing value has a path and no type: whatever it is read as refuses it, and says what is allowed.
  static const Node kMissing(Node::value_t::discarded);
  if (std::optional<JsonValue> value = Find(key)) return *std::move(value);
  return JsonValue(document_, &kMissing,
                   std::make_shared<PathNode>(PathNode{path_, PathNode::Kind::kKey, std::string(key)}));
}

std::vector<std::string> JsonValue::Keys() const {
  const Node& node = AsNode(node_);
  if (!node.is_object()) Reject("an object");
  std::vector<std::string> keys;
  for (const auto& item : node.items()) keys.push_back(item.key());
  return keys;
}

void JsonValue::AllowOnly(std::span<const std::string_view> allowed,
                          std::span<const std::string_view> also_known) const {
  std::vector<std::string_view> known(allowed.begin(), allowed.end());
  known.insert(known.end(), also_known.begin(), also_known.end());
  for (const std::string& key : Keys()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const auto nearest = Nearest(key, known);
    Fail(ErrorCode::kInvalidArgument, Path() + ": unknown key " + ShownNode(Node(key)) +
                                          (nearest ? "; did you mean \"" + std::string(*nearest) + "\"?"
                                                   : "; allowed: " + (allowed.empty() ? "no key" : Join(allowed))));
  }
}

void JsonValue::AllowOnly(std::initializer_list<std::string_view> keys) const {
  AllowOnly(std::span<const std::string_view>(keys.begin(), keys.size()));
}

size_t JsonValue::Size() const {
  const Node& node = AsNode(node_);
  if (!node.is_array()) Reject("an array");
  return node.size();
}

JsonValue JsonValue::operator[](size_t index) const {
  if (index >= Size()) Reject("an array of at least " + std::to_string(index + 1) + " elements");
  return JsonValue(document_, &AsNode(node_)[index],
                   std::make_shared<PathNode>(PathNode{path_, PathNode::Kind::kIndex, std::to_string(index)}));
}

int64_t JsonValue::Int(int64_t min, int64_t max) const {
  const Node& node = AsNode(node_);
  const std::string allowed =
      max == std::numeric_limits<int64_t>::max()
          ? (min == std::numeric_limits<int64_t>::min() ? std::string("an integer")
                                                        : "an integer, at least " + std::to_string(min))
          : "an integer from " + std::to_string(min) + " to " + std::to_string(max);
  if (IsWholeFloat(node, min, max)) Reject(allowed + ", without point or exponent");
  if (!node.is_number_integer()) Reject(allowed);
  if (node.is_number_unsigned() && node.get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()})
    Reject(allowed);
  const auto value = node.get<int64_t>();
  if (value < min || value > max) Reject(allowed);
  return value;
}

int64_t JsonValue::Count(int64_t min, int64_t max) const {
  const Node& node = AsNode(node_);
  return IsWholeFloat(node, min, max) ? static_cast<int64_t>(node.get<double>()) : Int(min, max);
}

uint64_t JsonValue::UInt64() const {
  const Node& node = AsNode(node_);
  // -0 is an integer token that nlohmann-json keeps as signed.
  const bool is_zero = node.is_number_integer() && node.get<int64_t>() == 0;
  if (!node.is_number_unsigned() && !is_zero) Reject("an integer from 0 to 18446744073709551615");
  return node.get<uint64_t>();
}

double JsonValue::Number() const {
  const Node& node = AsNode(node_);
  if (!node.is_number()) Reject("a number");
  return node.get<double>();
}

bool JsonValue::Bool() const {
  const Node& node = AsNode(node_);
  if (!node.is_boolean()) Reject("true or false");
  return node.get<bool>();
}

std::string JsonValue::String() const {
  const Node& node = AsNode(node_);
  if (!node.is_string()) Reject("a string");
  return node.get<std::string>();
}

std::string JsonValue::Name(size_t max_bytes) const {
  std::string name = String();
  const bool control = std::any_of(name.begin(), name.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; });
  if (name.size() > max_bytes || control) {
    Reject("a string of at most " + std::to_string(max_bytes) + " bytes without control characters");
  }
  return name;
}

size_t JsonValue::OneOf(std::initializer_list<std::string_view> allowed) const {
  return OneOf(std::span(allowed.begin(), allowed.size()));
}

size_t JsonValue::OneOf(std::span<const std::string_view> allowed) const {
  const Node& node = AsNode(node_);
  if (node.is_string()) {
    size_t index = 0;
    for (std::string_view word : allowed) {
      if (node.get_ref<const std::string&>() == word) return index;
      ++index;
    }
  }
  Reject(Join(allowed));
}

bool JsonValue::IsString() const { return AsNode(node_).is_string(); }
bool JsonValue::IsNumber() const { return AsNode(node_).is_number(); }
bool JsonValue::IsNull() const { return AsNode(node_).is_null(); }
bool JsonValue::IsObject() const { return AsNode(node_).is_object(); }
bool JsonValue::Equals(std::string_view json) const { return AsNode(node_) == Node::parse(json); }

std::string JsonValue::Path() const {
  std::vector<const PathNode*> nodes;
  for (const PathNode* node = path_.get(); node != nullptr; node = node->parent.get()) nodes.push_back(node);
  std::string path;
  for (size_t i = nodes.size(); i-- > 0;) {
    const bool below_root = i + 2 == nodes.size();
    if (nodes[i]->kind == PathNode::Kind::kKey) path += (below_root ? ": " : ".") + ShownKey(nodes[i]->name);
    if (nodes[i]->kind == PathNode::Kind::kIndex) path += "[" + nodes[i]->name + "]";
    if (nodes[i]->kind == PathNode::Kind::kRoot) path += nodes[i]->name;
  }
  return path;
}

std::string JsonValue::Shown() const { return ShownNode(AsNode(node_)); }

void JsonValue::Reject(std::string_view allowed) const {
  const std::string value = AsNode(node_).is_discarded() ? "missing" : Shown();
  Fail(ErrorCode::kInvalidArgument, Path() + " is " + value + "; allowed: " + std::string(allowed));
}

std::string JsonQuote(std::string_view text) {
  return Node(std::string(text)).dump(-1, ' ', false, Node::error_handler_t::replace);
}

std::string JsonNumber(double value) {
  Check(std::isfinite(value), "JSON has no NaN and no infinity");
  // As integer tokens, also -0, and without the exponent that to_chars finds shorter for 100000.
  constexpr double kMaxExact = 9007199254740992.0;  // 2^53
  if (std::abs(value) <= kMaxExact && value == std::floor(value)) return std::to_string(static_cast<int64_t>(value));
  char text[64];
  const auto end = std::to_chars(text, text + sizeof(text), value).ptr;
  return std::string(text, end);
}

std::optional<std::string_view> Nearest(std::string_view word, std::span<const std::string_view> known) {
  constexpr size_t kMaxWordChars = 80;  // keeps the quadratic distance cheap for hostile input
  if (word.size() > kMaxWordChars) return std::nullopt;
  std::optional<std::string_view> best;
  size_t best_distance = word.size() / 3 + 2;
  for (std::string_view candidate : known) {
    const size_t distance = EditDistance(word, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace plumbline::contract
