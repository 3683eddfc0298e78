#include "storage/checkpoint/safetensors.h"

#include "gtest/gtest.h"
#include "storage/engine/little_endian.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

absl::StatusOr<SafetensorsHeader> Parse(absl::string_view json,
                                        uint64_t data_bytes) {
  return ParseSafetensorsHeader(
      {.path = "/f", .json = json, .file_bytes = 8 + json.size() + data_bytes});
}

TEST(Safetensors, LaysOutWideElementsFirstThenByName) {
  const auto header = LayOutSafetensors({{"b", StoredDType::kF32, {2}},
                                         {"u", StoredDType::kU8, {3}},
                                         {"a", StoredDType::kF32, {1, 2}},
                                         {"x", StoredDType::kI64, {1}},
                                         {"empty", StoredDType::kF32, {0}}},
                                        {{"format", "pt"}});
  ASSERT_TRUE(header.ok());
  std::string order;
  for (const auto& t : header->tensors) {
    order += t.name + " ";
    EXPECT_EQ(t.begin % StoredDTypeBytes(t.dtype), 0u);
  }
  EXPECT_EQ(order, "x a b empty u ");
  EXPECT_EQ(header->data_offset % 8, 0u);
  EXPECT_EQ(header->file_bytes, header->data_offset + 8 + 8 + 8 + 0 + 3);
}

TEST(Safetensors, TheHeaderIsTextInTheOfficialForm) {
  const auto header =
      LayOutSafetensors({{"w", StoredDType::kF32, {2, 3}}}, {{"k", "v"}});
  const std::string bytes = FormatSafetensorsHeader(*header);
  EXPECT_EQ(bytes.size(), header->data_offset);
  EXPECT_EQ(LoadLittleEndian<uint64_t>(bytes.data()), bytes.size() - 8);
  const std::string json =
      "{\"__metadata__\":{\"k\":\"v\"},\"w\":{\"data_offsets\":[0,24],"
      "\"dtype\":\"F32\",\"shape\":[2,3]}}";
  EXPECT_EQ(bytes.substr(8, json.size()), json);
  EXPECT_EQ(bytes.find_first_not_of(' ', 8 + json.size()), std::string::npos);
  const auto parsed = Parse(bytes.substr(8), 24);
  ASSERT_TRUE(parsed.ok()) << parsed.status().ToString();
  EXPECT_EQ(parsed->metadata.at("k"), "v");
  EXPECT_EQ(parsed->tensors[0].shape, (std::vector<int64_t>{2, 3}));
}

TEST(Safetensors, RefusesNamesThatCannotBe) {
  EXPECT_TRUE(Fails(LayOutSafetensors({{"a"}, {"a"}}, {}).status(),
                    absl::StatusCode::kInvalidArgument,
                    {"\"a\" is there twice"}));
  EXPECT_FALSE(LayOutSafetensors({{""}}, {}).ok());
  EXPECT_FALSE(LayOutSafetensors({{"__metadata__"}}, {}).ok());
}

struct BadHeader {
  const char* json;
  uint64_t data_bytes;
  const char* error;
};

TEST(Safetensors, RefusesMalformedHeadersAndSaysWhere) {
  const BadHeader bad[] = {
      {"{", 0, "/f: offset 8 (header): not JSON at byte"},
      {"[]", 0, "expected an object"},
      {R"({"a":1})", 0, "\"a\": expected an object with \"dtype\""},
      {R"({"a":{"shape":[1],"data_offsets":[0,4]}})", 4, "dtype"},
      {R"({"a":{"dtype":"F33","shape":[1],"data_offsets":[0,4]}})", 4, "F33"},
      {R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4,
       "\"shape\""},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4,
       "begin <= end"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", 4,
       "begin <= end"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4,
       "hold 4 bytes, but dtype and shape need 8"},
      {R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],)"
       R"("data_offsets":[0,0]}})",
       0, "2^56"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
       R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
       4, "\"a\" is there twice"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
       R"("b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})",
       6, "inside the tensor before it"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
       R"("b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
       12, "leaving a hole"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 3,
       "it is truncated"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 5,
       "but the file goes on"},
      {R"({"__metadata__":{"a":1}})", 0, "\"a\" must be a string"},
      {R"({"__metadata__":[]})", 0, "must be an object"},
  };
  for (const BadHeader& b : bad) {
    EXPECT_TRUE(Fails(Parse(b.json, b.data_bytes).status(),
                      absl::StatusCode::kDataLoss, {"/f: ", b.error}))
        << b.json;
  }
}

TEST(Safetensors, EmptyFilesAndScalarsAreFine) {
  EXPECT_TRUE(Parse("{}", 0).ok());
  const auto scalar =
      Parse(R"({"a":{"dtype":"F64","shape":[],"data_offsets":[0,8]}})", 8);
  ASSERT_TRUE(scalar.ok());
  EXPECT_TRUE(scalar->tensors[0].shape.empty());
}

}  // namespace
}  // namespace troupe
