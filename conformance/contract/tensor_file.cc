// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/tensor_file.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <set>

#include "conformance/contract/error.h"
#include "conformance/contract/file_io.h"
#include "conformance/contract/strict_json.h"

namespace plumbline::contract {
namespace {

static_assert(std::endian::native == std::endian::little, "files are little-endian and are copied as they are");

constexpr size_t kLengthBytes = 8;
constexpr size_t kMaxRank = 8;
constexpr std::string_view kMetadataName = "__metadata__";

struct Entry {
  HostTensor tensor;
  int64_t begin = 0;
  int64_t end = 0;
};

// unit times the product of the shape; nothing where an extent is negative or the product of those that are not zero
// overflows. A zero extent does not excuse the others, or the answer would depend on their order.
std::optional<int64_t> Product(int64_t unit, const std::vector<int64_t>& shape) {
  int64_t product = unit;
  bool empty = false;
  for (int64_t extent : shape) {
    if (extent < 0) return std::nullopt;
    if (extent == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(product, extent, &product)) {
      return std::nullopt;
    }
  }
  return empty ? 0 : product;
}

std::optional<int64_t> ByteCount(const HostTensor& tensor) { return Product(SizeBytes(tensor.dtype), tensor.shape); }

Entry ParseEntry(const std::string& name, const JsonValue& value, int64_t data_bytes) {
  value.AllowOnly({"dtype", "shape", "data_offsets"});
  Entry entry;
  entry.tensor.name = name;
  const std::optional<DType> dtype = DTypeFromName(value.At("dtype").String());
  if (!dtype) value.At("dtype").Reject("F64, F32, BF16, F16, I64, I32, U16, U8");
  entry.tensor.dtype = *dtype;
  const JsonValue shape = value.At("shape");
  if (shape.Size() > kMaxRank) shape.Reject("at most 8 dimensions");
  for (size_t i = 0; i < shape.Size(); ++i) entry.tensor.shape.push_back(shape[i].Int(0));
  const JsonValue offsets = value.At("data_offsets");
  if (offsets.Size() != 2) offsets.Reject("two integers [begin, end]");
  entry.begin = offsets[0].Int(0, data_bytes);
  entry.end = offsets[1].Int(entry.begin, data_bytes);
  const std::optional<int64_t> bytes = ByteCount(entry.tensor);
  if (!bytes || *bytes != entry.end - entry.begin) {
    offsets.Reject(bytes ? std::to_string(*bytes) + " bytes, as dtype and shape say" : "a size below 2^63 bytes");
  }
  return entry;
}

// Tensors must cover the data from its first byte to its last, without gap or overlap.
void CheckCoverage(const std::vector<Entry>& entries, int64_t data_bytes, std::string_view where) {
  int64_t expected = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != expected) {
      Fail(ErrorCode::kInvalidArgument, std::string(where) + ": tensor " + JsonQuote(entry.tensor.name) +
                                            " begins at byte " + std::to_string(entry.begin) + "; allowed: " +
                                            std::to_string(expected) + ", where the one before it ends");
    }
    expected = entry.end;
  }
  if (expected != data_bytes) {
    Fail(ErrorCode::kInvalidArgument, std::string(where) + ": tensors end at byte " + std::to_string(expected) +
                                          " of the data, which has " + std::to_string(data_bytes) + " bytes");
  }
}

// What the reader demands of a file, so that none is written that nobody can read.
void CheckWritable(const TensorFile& file) {
  std::set<std::string_view> names = {kMetadataName};
  for (const HostTensor& tensor : file.tensors) {
    Check(names.insert(tensor.name).second, "names of tensors in a file differ, also from __metadata__");
    Check(tensor.shape.size() <= kMaxRank, "a written tensor has at most 8 dimensions");
    Check(ByteCount(tensor) == static_cast<int64_t>(tensor.data.size()), "a tensor's data fits its shape");
  }
}

std::string HeaderOf(const TensorFile& file) {
  std::string header = "{";
  if (!file.metadata.empty()) {
    header += JsonQuote(kMetadataName) + ":{";
    for (const auto& [key, value] : file.metadata) {
      if (!header.ends_with('{')) header += ",";
      header += JsonQuote(key) + ":" + JsonQuote(value);
    }
    header += "}";
  }
  size_t offset = 0;
  for (const HostTensor& tensor : file.tensors) {
    if (!header.ends_with('{')) header += ",";
    header += JsonQuote(tensor.name) + ":{\"dtype\":" + JsonQuote(Name(tensor.dtype)) + ",\"shape\":[";
    for (size_t i = 0; i < tensor.shape.size(); ++i) header += (i ? "," : "") + std::to_string(tensor.shape[i]);
    header +=
        "],\"data_offsets\":[" + std::to_string(offset) + "," + std::to_string(offset + tensor.data.size()) + "]}";
    offset += tensor.data.size();
  }
  header += "}";
  header.append((8 - header.size() % 8) % 8, ' ');
  return header;
}

template <typename T>
HostTensor Make(std::string name, std::vector<int64_t> shape, DType dtype, std::span<const T> values) {
  HostTensor tensor{std::move(name), dtype, std::move(shape), std::vector<std::byte>(values.size_bytes())};
  Check(tensor.numel() == static_cast<int64_t>(values.size()), "a tensor's shape fits its values");
  if (!values.empty()) std::memcpy(tensor.data.data(), values.data(), values.size_bytes());
  return tensor;
}

template <typename T>
T Load(const HostTensor& tensor, int64_t index) {
  T value;
  std::memcpy(&value, tensor.data.data() + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

// 2^53: integers up to here are exact in every type that we read.
constexpr double kMaxExact = 9007199254740992.0;

double HalfToDouble(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  const double sign = (bits & 0x8000) ? -1 : 1;
  if (exponent == 31) return fraction ? std::nan("") : sign * HUGE_VAL;
  return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25));
}

double FloatElement(const HostTensor& tensor, int64_t index) {
  switch (tensor.dtype) {
    case DType::kF64:
      return Load<double>(tensor, index);
    case DType::kF32:
      return Load<float>(tensor, index);
    case DType::kBF16:
      return std::bit_cast<float>(static_cast<uint32_t>(Load<uint16_t>(tensor, index)) << 16);
    default:
      return HalfToDouble(Load<uint16_t>(tensor, index));
  }
}

const char* NameOfNonFinite(double value) { return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf"; }

int64_t IntegerElement(const HostTensor& tensor, int64_t index) {
  switch (tensor.dtype) {
    case DType::kI64:
      return Load<int64_t>(tensor, index);
    case DType::kI32:
      return Load<int32_t>(tensor, index);
    case DType::kU16:
      return Load<uint16_t>(tensor, index);
    case DType::kU8:
      return Load<uint8_t>(tensor, index);
    default: {
      const double value = FloatElement(tensor, index);
      if (std::abs(value) <= kMaxExact && value == std::floor(value)) return static_cast<int64_t>(value);
      Fail(ErrorCode::kInvalidArgument, "tensor " + JsonQuote(tensor.name) + ": element " + std::to_string(index) +
                                            " is " +
                                            (std::isfinite(value) ? JsonNumber(value) : NameOfNonFinite(value)) +
                                            "; allowed: an integer of at most 2^53");
    }
  }
}

}  // namespace

int64_t HostTensor::numel() const {
  const std::optional<int64_t> count = Product(1, shape);
  Check(count.has_value(), "the extents of a tensor are not negative and their product fits 63 bits");
  return *count;
}

const HostTensor& TensorFile::Find(std::string_view name) const {
  for (const HostTensor& tensor : tensors) {
    if (tensor.name == name) return tensor;
  }
  Fail(ErrorCode::kInvalidArgument, "tensor " + JsonQuote(name) + " is missing");
}

TensorFile ParseTensorFile(std::span<const std::byte> bytes, std::string_view where) {
  const std::string prefix(where);
  uint64_t header_bytes = 0;
  if (bytes.size() < kLengthBytes) {
    Fail(ErrorCode::kInvalidArgument,
         prefix + ": has " + std::to_string(bytes.size()) + " bytes; a safetensors file has at least 8 and a header");
  }
  std::memcpy(&header_bytes, bytes.data(), kLengthBytes);
  if (header_bytes > kMaxHeaderBytes || header_bytes > bytes.size() - kLengthBytes) {
    Fail(ErrorCode::kInvalidArgument,
         prefix + ": header length is " + std::to_string(header_bytes) + "; allowed: at most " +
             std::to_string(std::min<uint64_t>(kMaxHeaderBytes, bytes.size() - kLengthBytes)));
  }
  const std::string_view header(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes, header_bytes);
  const std::span<const std::byte> data = bytes.subspan(kLengthBytes + header_bytes);
  const JsonValue root = JsonValue::Parse(header, prefix + ": header");

  TensorFile file;
  std::vector<Entry> entries;
  for (const std::string& name : root.Keys()) {
    const JsonValue value = root.At(name);
    if (name != kMetadataName) {
      entries.push_back(ParseEntry(name, value, static_cast<int64_t>(data.size())));
      continue;
    }
    for (const std::string& key : value.Keys()) file.metadata[key] = value.At(key).String();
  }
  // Empty tensors share their begin with a neighbour: the end breaks the tie.
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  CheckCoverage(entries, static_cast<int64_t>(data.size()), where);
  for (Entry& entry : entries) {
    const auto slice = data.subspan(static_cast<size_t>(entry.begin), static_cast<size_t>(entry.end - entry.begin));
    entry.tensor.data.assign(slice.begin(), slice.end());
    file.tensors.push_back(std::move(entry.tensor));
  }
  return file;
}

TensorFile ReadTensorFile(const std::filesystem::path& path) {
  const std::string content = ReadFile(path);
  return ParseTensorFile(std::as_bytes(std::span(content.data(), content.size())), path.filename().string());
}

TensorFile ReadTensorFile(const std::filesystem::path& folder, const std::string& name) {
  const std::string content = ReadFileOf(folder, name);
  return ParseTensorFile(std::as_bytes(std::span(content.data(), content.size())), name);
}

void WriteTensorFile(const std::filesystem::path& path, const TensorFile& file) {
  CheckWritable(file);
  const std::string header = HeaderOf(file);
  Check(header.size() <= kMaxHeaderBytes, "a written header is one that we read");
  const uint64_t header_bytes = header.size();
  std::string content(reinterpret_cast<const char*>(&header_bytes), kLengthBytes);
  content += header;
  for (const HostTensor& tensor : file.tensors) {
    content.append(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size());
  }
  WriteFile(path, content);
}

std::vector<int64_t> ToInt64(const HostTensor& tensor) {
  std::vector<int64_t> values(static_cast<size_t>(tensor.numel()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = IntegerElement(tensor, static_cast<int64_t>(i));
  return values;
}

HostTensor MakeI64(std::string name, std::vector<int64_t> shape, std::span<const int64_t> values) {
  return Make(std::move(name), std::move(shape), DType::kI64, values);
}

HostTensor MakeI32(std::string name, std::vector<int64_t> shape, std::span<const int32_t> values) {
  return Make(std::move(name), std::move(shape), DType::kI32, values);
}

HostTensor MakeF32(std::string name, std::vector<int64_t> shape, std::span<const float> values) {
  return Make(std::move(name), std::move(shape), DType::kF32, values);
}

}  // namespace plumbline::contract
