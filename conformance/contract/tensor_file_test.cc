// SPDX-License-Identifier: Apache-2.0
// safetensors files: what is written reads back, what is malformed is refused with the place and the number, and
// nothing is allocated on the word of a header.
#include "conformance/contract/tensor_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "conformance/contract/file_io.h"
#include "conformance/contract/testing/error_message.h"
#include "conformance/contract/testing/file_size_limit.h"
#include "conformance/contract/testing/temporary_folder.h"

namespace plumbline::contract {
namespace {

using testing::ErrorMessage;
using testing::TemporaryFolder;

// A file with this header and data; the length is the header's unless given.
std::string File(const std::string& header, const std::string& data = "", std::optional<uint64_t> length = {}) {
  const uint64_t value = length.value_or(header.size());
  std::string file(sizeof(value), '\0');
  std::memcpy(file.data(), &value, sizeof(value));
  return file + header + data;
}

TensorFile Parse(const std::string& file) {
  return ParseTensorFile(std::as_bytes(std::span(file.data(), file.size())), "t.safetensors");
}

std::string Message(const std::string& file) {
  return ErrorMessage(ErrorCode::kInvalidArgument, [&] { Parse(file); });
}

// One tensor "a" with these fields over `num_bytes` bytes of data.
std::string One(const std::string& fields, size_t num_bytes = 4) {
  return File("{\"a\":{" + fields + "}}", std::string(num_bytes, '\0'));
}

template <typename T>
HostTensor Tensor(const std::string& name, DType dtype, std::vector<int64_t> shape, const std::vector<T>& values) {
  HostTensor tensor{name, dtype, std::move(shape), std::vector<std::byte>(values.size() * sizeof(T))};
  if (!values.empty()) std::memcpy(tensor.data.data(), values.data(), tensor.data.size());
  return tensor;
}

void ExpectEqual(const TensorFile& a, const TensorFile& b) {
  EXPECT_EQ(a.metadata, b.metadata);
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (size_t i = 0; i < a.tensors.size(); ++i) {
    EXPECT_EQ(a.tensors[i].name, b.tensors[i].name);
    EXPECT_EQ(a.tensors[i].dtype, b.tensors[i].dtype) << a.tensors[i].name;
    EXPECT_EQ(a.tensors[i].shape, b.tensors[i].shape) << a.tensors[i].name;
    EXPECT_EQ(a.tensors[i].data, b.tensors[i].data) << a.tensors[i].name;
  }
}

TEST(TensorFile, RoundTripsEveryTypeInOrderWithEmptyTensorsAndScalars) {
  const TensorFile file{{
                            Tensor<double>("z", DType::kF64, {2}, {-0.0, 1e300}),
                            Tensor<float>("f32", DType::kF32, {1, 3}, {1, std::nanf(""), -2}),
                            Tensor<uint16_t>("bf16", DType::kBF16, {3}, {0x3f80, 0x7fc0, 0xffff}),
                            Tensor<uint16_t>("f16", DType::kF16, {1}, {0x3c00}),
                            Tensor<uint8_t>("u8 of odd size", DType::kU8, {3}, {1, 2, 255}),
                            Tensor<int64_t>("scalar", DType::kI64, {}, {std::numeric_limits<int64_t>::min()}),
                            Tensor<int32_t>("i32", DType::kI32, {2, 1, 1}, {-1, 7}),
                            Tensor<uint16_t>("u16", DType::kU16, {1}, {65535}),
                            Tensor<float>("empty", DType::kF32, {0}, {}),
                            Tensor<float>("empty too \"quoted\"\n", DType::kF32, {3, 0, 5}, {}),
                            Tensor<uint8_t>("last", DType::kU8, {1}, {9}),
                        },
                        {{"step", "0"}, {"note", "a\nb"}, {"", ""}}};
  const TemporaryFolder folder;
  WriteTensorFile(folder / "t", file);
  ExpectEqual(ReadTensorFile(folder / "t"), file);
}

TEST(TensorFile, WithoutTensorsOrWithEmptyOnesOnlyIsAFile) {
  const TemporaryFolder folder;
  WriteTensorFile(folder / "t", {});
  ExpectEqual(ReadTensorFile(folder / "t"), {});
  const TensorFile empty{{Tensor<float>("a", DType::kF32, {0}, {}), Tensor<float>("b", DType::kF64, {0, 2}, {})}, {}};
  WriteTensorFile(folder / "t", empty);
  ExpectEqual(ReadTensorFile(folder / "t"), empty);
}

TEST(TensorFile, BeginsItsDataAtAMultipleOfEightBytesPaddedWithSpaces) {
  const TemporaryFolder folder;
  for (size_t name_size = 1; name_size <= 9; ++name_size) {
    WriteTensorFile(folder / "t", {{Tensor<uint8_t>(std::string(name_size, 'n'), DType::kU8, {1}, {7})}, {}});
    const std::string file = ReadFile(folder / "t");
    uint64_t header_bytes = 0;
    std::memcpy(&header_bytes, file.data(), sizeof(header_bytes));
    EXPECT_EQ(header_bytes % 8, 0u);
    EXPECT_EQ(file.size(), 8 + header_bytes + 1);
    EXPECT_EQ(file[8], '{');
    EXPECT_LT(std::count(file.begin() + 8, file.begin() + 8 + static_cast<int64_t>(header_bytes), ' '), 8);
    EXPECT_EQ(file.find_last_not_of(' ', 8 + header_bytes - 1), file.rfind('}'));
  }
}

TEST(TensorFile, ReadsTensorsInTheOrderOfTheirOffsetsNotOfTheirNames) {
  const TensorFile file = Parse(File(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},)"
                                     R"("b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}   )",
                                     "xy"));
  ASSERT_EQ(file.tensors.size(), 2u);
  EXPECT_EQ(file.tensors[0].name, "b");
  EXPECT_EQ(ToInt64(file.tensors[0]), std::vector<int64_t>{'x'});
  EXPECT_EQ(ToInt64(file.Find("a")), std::vector<int64_t>{'y'});
}

TEST(TensorFile, FindNamesTheMissingTensor) {
  EXPECT_EQ(ErrorMessage(ErrorCode::kInvalidArgument, [] { TensorFile{}.Find("pos.weight"); }),
            "tensor \"pos.weight\" is missing");
}

TEST(TensorFile, RefusesALengthThatDoesNotFit) {
  const std::string object = "{}      ";
  EXPECT_EQ(Message(""), "t.safetensors: has 0 bytes; a safetensors file has at least 8 and a header");
  EXPECT_EQ(Message("1234567"), "t.safetensors: has 7 bytes; a safetensors file has at least 8 and a header");
  EXPECT_EQ(Message(File("", "", 0)), "t.safetensors: header: is empty; a JSON value is expected");
  EXPECT_EQ(Message(File(object, "", 9)), "t.safetensors: header length is 9; allowed: at most 8");
  EXPECT_EQ(Message(File(object, "", uint64_t{1} << 63)),
            "t.safetensors: header length is 9223372036854775808; allowed: at most 8");
  EXPECT_EQ(Message(File(object, "", ~uint64_t{0} - 7)),
            "t.safetensors: header length is 18446744073709551608; allowed: at most 8");
  EXPECT_EQ(Message(File("{}" + std::string(kMaxHeaderBytes, ' '))),
            "t.safetensors: header length is 16777218; allowed: at most 16777216");
  EXPECT_NO_THROW(Parse(File("{}" + std::string(kMaxHeaderBytes - 2, ' '))));
}

TEST(TensorFile, RefusesAHeaderThatIsNoObjectOfTensors) {
  EXPECT_EQ(Message(File("[]")), "t.safetensors: header is []; allowed: an object");
  EXPECT_EQ(Message(File("{\"a\":1}")), "t.safetensors: header: a is 1; allowed: an object");
  EXPECT_EQ(Message(File("{\"a\":{}")), "t.safetensors: header: not valid JSON at line 1, column 8");
  EXPECT_EQ(Message(File(std::string("{}\0", 3))), "t.safetensors: header: not valid JSON at line 1, column 3");
  EXPECT_EQ(Message(File("{\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},"
                         "\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}")),
            "t.safetensors: header: key \"a\" occurs twice; once is allowed");
}

TEST(TensorFile, RefusesMetadataThatIsNotText) {
  EXPECT_EQ(Message(File(R"({"__metadata__":{"step":0}})")),
            "t.safetensors: header: __metadata__.step is 0; allowed: a string");
  EXPECT_EQ(Message(File(R"({"__metadata__":[]})")), "t.safetensors: header: __metadata__ is []; allowed: an object");
}

TEST(TensorFile, NamesTheFieldOfATensorThatIsWrong) {
  const std::string a = "t.safetensors: header: a";
  const struct {
    std::string fields, message;
  } kTable[] = {
      {R"("shape":[1],"data_offsets":[0,4])", a + ".dtype is missing; allowed: a string"},
      {R"("dtype":"F32","data_offsets":[0,4])", a + ".shape is missing; allowed: an array"},
      {R"("dtype":"F32","shape":[1])", a + ".data_offsets is missing; allowed: an array"},
      {R"("dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1)",
       a + ": unknown key \"x\"; allowed: dtype, shape, data_offsets"},
      {R"("dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4])",
       a + ".dtype is \"F8_E4M3\"; allowed: F64, F32, BF16, F16, I64, I32, U16, U8"},
      {R"("dtype":32,"shape":[1],"data_offsets":[0,4])", a + ".dtype is 32; allowed: a string"},
      {R"("dtype":"F32","shape":1,"data_offsets":[0,4])", a + ".shape is 1; allowed: an array"},
      {R"("dtype":"F32","shape":[-1],"data_offsets":[0,4])", a + ".shape[0] is -1; allowed: an integer, at least 0"},
      {R"("dtype":"F32","shape":[1.0],"data_offsets":[0,4])",
       a + ".shape[0] is 1.0; allowed: an integer, at least 0, without point or exponent"},
      {R"("dtype":"F32","shape":[-1,-1],"data_offsets":[0,4])", a + ".shape[0] is -1; allowed: an integer, at least 0"},
      {R"("dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4])",
       a + ".shape is [1,1,1,1,1,1,1,1,1]; allowed: at most 8 dimensions"},
      {R"("dtype":"F32","shape":[1],"data_offsets":[0])",
       a + ".data_offsets is [0]; allowed: two integers [begin, end]"},
      {R"("dtype":"F32","shape":[1],"data_offsets":[0,4,8])",
       a + ".data_offsets is [0,4,8]; allowed: two integers [begin, end]"},
      {R"("dtype":"F32","shape":[1],"data_offsets":[-4,0])",
       a + ".data_offsets[0] is -4; allowed: an integer from 0 to 4"},
      {R"("dtype":"F32","shape":[1],"data_offsets":[0,5])",
       a + ".data_offsets[1] is 5; allowed: an integer from 0 to 4"},
      {R"("dtype":"F32","shape":[1],"data_offsets":[4,0])",
       a + ".data_offsets[1] is 0; allowed: an integer from 4 to 4"},
      {R"("dtype":"F32","shape":[1],"data_offsets":[9223372036854775808,4])",
       a + ".data_offsets[0] is 9223372036854775808; allowed: an integer from 0 to 4"},
      {R"("dtype":"F32","shape":[2],"data_offsets":[0,4])",
       a + ".data_offsets is [0,4]; allowed: 8 bytes, as dtype and shape say"},
      {R"("dtype":"F64","shape":[],"data_offsets":[0,4])",
       a + ".data_offsets is [0,4]; allowed: 8 bytes, as dtype and shape say"},
      {R"("dtype":"F32","shape":[0],"data_offsets":[0,4])",
       a + ".data_offsets is [0,4]; allowed: 0 bytes, as dtype and shape say"},
  };
  for (const auto& [fields, message] : kTable) EXPECT_EQ(Message(One(fields)), message) << fields;
}

TEST(TensorFile, RefusesAShapeWhoseProductOverflowsWhereverAZeroStands) {
  // 2^32 · 2^32 · 1 byte is 0 modulo 2^64, and would pass as an empty tensor.
  for (const std::string shape :
       {"[4294967296,4294967296]", "[9223372036854775807,2]", "[4611686018427387904,4]", "[4294967296,4294967296,0]",
        "[0,4294967296,4294967296]", "[4294967296,0,4294967296]", "[3037000500,3037000500]"}) {
    const std::string file = One("\"dtype\":\"U8\",\"shape\":" + shape + ",\"data_offsets\":[0,0]", 0);
    EXPECT_EQ(Message(file), "t.safetensors: header: a.data_offsets is [0,0]; allowed: a size below 2^63 bytes")
        << shape;
  }
  // The elements fit int64, their bytes do not.
  EXPECT_EQ(Message(One(R"("dtype":"F64","shape":[1152921504606846976],"data_offsets":[0,0])", 0)),
            "t.safetensors: header: a.data_offsets is [0,0]; allowed: a size below 2^63 bytes");
}

TEST(TensorFile, RefusesGapsOverlapsAndRests) {
  const auto two = [](const char* first, const char* second) {
    return "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":" + std::string(first) +
           "},\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":" + second + "}}";
  };
  EXPECT_NO_THROW(Parse(File(two("[0,2]", "[2,4]"), "1234")));
  EXPECT_EQ(Message(File(two("[0,2]", "[3,5]"), "12345")),
            "t.safetensors: tensor \"b\" begins at byte 3; allowed: 2, where the one before it ends");
  EXPECT_EQ(Message(File(two("[1,3]", "[3,5]"), "12345")),
            "t.safetensors: tensor \"a\" begins at byte 1; allowed: 0, where the one before it ends");
  EXPECT_EQ(Message(File(two("[0,2]", "[1,3]"), "123")),
            "t.safetensors: tensor \"b\" begins at byte 1; allowed: 2, where the one before it ends");
  EXPECT_EQ(Message(File(two("[0,2]", "[0,2]"), "12")),
            "t.safetensors: tensor \"b\" begins at byte 0; allowed: 2, where the one before it ends");
  EXPECT_EQ(Message(File(two("[0,2]", "[2,4]"), "12345")),
            "t.safetensors: tensors end at byte 4 of the data, which has 5 bytes");
  EXPECT_EQ(Message(File("{}", "x")), "t.safetensors: tensors end at byte 0 of the data, which has 1 bytes");
}

TEST(TensorFile, RefusesAnEmptyTensorInsideAnother) {
  EXPECT_EQ(Message(File(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                         R"("b":{"dtype":"U8","shape":[0],"data_offsets":[1,1]}})",
                         "12")),
            "t.safetensors: tensor \"b\" begins at byte 1; allowed: 2, where the one before it ends");
}

TEST(TensorFile, SurvivesEveryTruncationAndEveryChangedByte) {
  const TemporaryFolder folder;
  WriteTensorFile(folder / "t",
                  {{MakeI32("a", {3}, std::vector<int32_t>{1, 2, 3}), MakeF32("b", {}, {{0.5f}})}, {{"k", "v"}}});
  const std::string file = ReadFile(folder / "t");
  for (size_t size = 0; size < file.size(); ++size) Message(file.substr(0, size));
  int num_refused = 0;
  for (size_t i = 0; i < file.size(); ++i) {
    for (unsigned char c : {0x00, 0x20, 0x22, 0x30, 0x39, 0x7f, 0x80, 0xff}) {
      std::string changed = file;
      changed[i] = static_cast<char>(c);
      try {
        Parse(changed);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
        ++num_refused;
      }
    }
  }
  EXPECT_GT(num_refused, 100);
}

TEST(ReadTensorFile, NamesAMissingFile) {
  const TemporaryFolder folder;
  EXPECT_EQ(ErrorMessage(ErrorCode::kInvalidArgument, [&] { ReadTensorFile(folder / "absent"); }),
            (folder / "absent").string() + ": cannot be read: No such file or directory");
}

TEST(ReadTensorFile, NamesAFileOfAFolderWithoutTheFolder) {
  const TemporaryFolder folder;
  EXPECT_EQ(ErrorMessage(ErrorCode::kInvalidArgument, [&] { ReadTensorFile(folder.path(), "rank0/absent"); }),
            "rank0/absent: cannot be read: No such file or directory");
  WriteFile(folder / "short", "1234567");
  EXPECT_EQ(ErrorMessage(ErrorCode::kInvalidArgument, [&] { ReadTensorFile(folder.path(), "short"); }),
            "short: has 7 bytes; a safetensors file has at least 8 and a header");
}

TEST(WriteTensorFile, LeavesTheOldFileWhereItCannotWriteTheNewOne) {
  const TemporaryFolder folder;
  WriteTensorFile(folder / "t", {{MakeI64("a", {1}, {{7}})}, {}});
  const std::string old = ReadFile(folder / "t");
  {
    const testing::FileSizeLimit full_disk(100);
    EXPECT_EQ(ErrorMessage(ErrorCode::kEnvironment,
                           [&] {
                             WriteTensorFile(folder / "t", {{MakeI64("a", {99}, std::vector<int64_t>(99))}, {}});
                           }),
              (folder / "t").string() + ": cannot be written: File too large");
  }
  EXPECT_EQ(ReadFile(folder / "t"), old);
  const std::filesystem::path missing = folder / "missing" / "t";
  EXPECT_EQ(ErrorMessage(ErrorCode::kEnvironment, [&] { WriteTensorFile(missing, {}); }),
            missing.string() + ": cannot be written: No such file or directory");
}

TEST(WriteTensorFile, RefusesToWriteWhatItWouldNotRead) {
  const TemporaryFolder folder;
  const auto refuses = [&](const TensorFile& file) {
    ErrorMessage(ErrorCode::kInternal, [&] { WriteTensorFile(folder / "t", file); });
    EXPECT_FALSE(std::filesystem::exists(folder / "t"));
  };
  const HostTensor a = MakeI64("a", {1}, {{7}});
  refuses({{a, a}, {}});
  refuses({{MakeI64("__metadata__", {1}, {{7}})}, {}});
  refuses({{MakeI64("nine", {1, 1, 1, 1, 1, 1, 1, 1, 1}, {{7}})}, {}});
  HostTensor wrong = a;
  wrong.shape = {2};
  refuses({{wrong}, {}});
  wrong.shape = {-1};
  refuses({{wrong}, {}});
  wrong.shape = {-1, -1};
  refuses({{wrong}, {}});
}

TEST(Make, DemandsThatValuesFillTheShape) {
  constexpr int64_t kTwoTo32 = int64_t{1} << 32;
  EXPECT_EQ(MakeI64("a", {2, 0}, {}).numel(), 0);
  EXPECT_EQ(MakeF32("a", {}, {{1.0f}}).numel(), 1);
  ErrorMessage(ErrorCode::kInternal, [] { MakeI64("a", {2}, {{7}}); });
  ErrorMessage(ErrorCode::kInternal, [] { MakeI64("a", {}, {}); });
  ErrorMessage(ErrorCode::kInternal, [] { MakeI64("a", {-1, -1}, {{7}}); });
  ErrorMessage(ErrorCode::kInternal, [] { MakeI64("a", {kTwoTo32, kTwoTo32}, {}); });
}

TEST(ToInt64, ReadsIntegersOfEveryType) {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min(), kMax = std::numeric_limits<int64_t>::max();
  using Values = std::vector<int64_t>;
  EXPECT_EQ(ToInt64(Tensor<int64_t>("a", DType::kI64, {3}, {kMin, kMax, 0})), (Values{kMin, kMax, 0}));
  EXPECT_EQ(ToInt64(Tensor<int32_t>("a", DType::kI32, {2}, {-2147483648, 2147483647})),
            (Values{-2147483648, 2147483647}));
  EXPECT_EQ(ToInt64(Tensor<uint16_t>("a", DType::kU16, {2}, {0, 65535})), (Values{0, 65535}));
  EXPECT_EQ(ToInt64(Tensor<uint8_t>("a", DType::kU8, {2}, {0, 255})), (Values{0, 255}));
  EXPECT_EQ(ToInt64(Tensor<float>("a", DType::kF32, {3}, {-0.0f, -3, 16777216})), (Values{0, -3, 16777216}));
  EXPECT_EQ(ToInt64(Tensor<double>("a", DType::kF64, {2}, {-9007199254740992.0, 9007199254740992.0})),
            (Values{-9007199254740992, 9007199254740992}));
  EXPECT_EQ(ToInt64(Tensor<float>("a", DType::kF32, {0}, {})), Values{});
  EXPECT_EQ(ToInt64(Tensor<float>("a", DType::kF32, {}, {5})), Values{5});
}

TEST(ToInt64, DecodesHalfAndBfloat16) {
  // 1, -2, largest finite (65504), 2^-0 · 1.5 · 2 = 3, zeros; bf16: 1, -2, 256, 3, -0.
  EXPECT_EQ(ToInt64(Tensor<uint16_t>("a", DType::kF16, {6}, {0x3c00, 0xc000, 0x7bff, 0x4200, 0x0000, 0x8000})),
            (std::vector<int64_t>{1, -2, 65504, 3, 0, 0}));
  EXPECT_EQ(ToInt64(Tensor<uint16_t>("a", DType::kBF16, {5}, {0x3f80, 0xc000, 0x4380, 0x4040, 0x8000})),
            (std::vector<int64_t>{1, -2, 256, 3, 0}));
}

TEST(ToInt64, DecodesEveryIntegerThatHalfCanHold) {
  // Independently of the decoder: 2^e ≤ n < 2^(e+1) has the bits (e + 15) << 10 | (n - 2^e) << (10 - e).
  for (int n = 1; n <= 2048; ++n) {
    const int e = std::bit_width(static_cast<unsigned>(n)) - 1;
    const int fraction = n - (1 << e);
    const auto bits = static_cast<uint16_t>((e + 15) << 10 | (e <= 10 ? fraction << (10 - e) : fraction >> (e - 10)));
    ASSERT_EQ(ToInt64(Tensor<uint16_t>("a", DType::kF16, {1}, {bits})), std::vector<int64_t>{n});
    ASSERT_EQ(ToInt64(Tensor<uint16_t>("a", DType::kF16, {1}, {static_cast<uint16_t>(bits | 0x8000)})),
              std::vector<int64_t>{-n});
  }
}

TEST(ToInt64, NamesTheElementThatIsNoInteger) {
  const std::string allowed = "; allowed: an integer of at most 2^53";
  const auto message = [](const HostTensor& tensor) {
    return ErrorMessage(ErrorCode::kInvalidArgument, [&] { ToInt64(tensor); });
  };
  const auto nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  const struct {
    double value;
    std::string shown;
  } kTable[] = {{0.5, "0.5"},
                {nan, "nan"},
                {inf, "inf"},
                {-inf, "-inf"},
                {1e-9, "1e-09"},
                {-1e300, "-1e+300"},
                {9007199254740994.0, "9007199254740994"}};
  for (const auto& [value, shown] : kTable) {
    EXPECT_EQ(message(Tensor<double>("x", DType::kF64, {2}, {1, value})),
              "tensor \"x\": element 1 is " + shown + allowed);
  }
  EXPECT_EQ(message(Tensor<float>("x", DType::kF32, {2}, {1, 0.5f})), "tensor \"x\": element 1 is 0.5" + allowed);
  EXPECT_EQ(message(Tensor<float>("x", DType::kF32, {1}, {std::nanf("")})), "tensor \"x\": element 0 is nan" + allowed);
  const struct {
    DType dtype;
    uint16_t bits;
    std::string shown;
  } kHalves[] = {{DType::kF16, 0x3800, "0.5"},
                 {DType::kF16, 0x7c00, "inf"},
                 {DType::kF16, 0xfc00, "-inf"},
                 {DType::kF16, 0x7e00, "nan"},
                 {DType::kF16, 0x0001, "5.960464477539063e-08"},
                 {DType::kBF16, 0x3f00, "0.5"},
                 {DType::kBF16, 0x7f80, "inf"},
                 {DType::kBF16, 0x7fc0, "nan"}};
  for (const auto& [dtype, bits, shown] : kHalves) {
    EXPECT_EQ(message(Tensor<uint16_t>("x", dtype, {1}, {bits})), "tensor \"x\": element 0 is " + shown + allowed);
  }
}

}  // namespace
}  // namespace plumbline::contract
