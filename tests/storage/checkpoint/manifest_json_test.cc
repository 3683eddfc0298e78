#include "storage/checkpoint/manifest_json.h"

#include "gtest/gtest.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

using nlohmann::json;

TEST(ManifestJson, TensorsAndFilesComeBack) {
  const ManifestTensor tensor = {"w",
                                 StoredDType::kBF16,
                                 {4, 2},
                                 {{"f", "w[0:4, 0:2]", {{0, 0}, {4, 2}}}}};
  const auto parsed = TensorFromJson(TensorToJson(tensor));
  ASSERT_TRUE(parsed.ok()) << parsed.status().ToString();
  EXPECT_EQ(parsed->name, "w");
  EXPECT_EQ(parsed->dtype, StoredDType::kBF16);
  EXPECT_EQ(parsed->shape, tensor.shape);
  EXPECT_EQ(parsed->shards[0].key, "w[0:4, 0:2]");
  EXPECT_EQ(parsed->shards[0].box, tensor.shards[0].box);

  const auto file = FileFromJson(FileToJson({"f", 1ull << 40, 0x0000beef}));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->bytes, 1ull << 40);
  EXPECT_EQ(file->crc32c, 0xbeefu);
  EXPECT_EQ(FormatCrc(0xbeef), "0000beef");
}

TEST(ManifestJson, ChecksumsOfBlocksComeBackAndFitTheFile) {
  const ManifestFile file = {"f", 2 * kBlockBytes + 1, 7, {1, 0xbeef, ~0u}};
  json entry = FileToJson(file);
  EXPECT_EQ(entry["block_crc32c"], "000000010000beefffffffff");
  const auto parsed = FileFromJson(entry);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->blocks, file.blocks);
  for (const char* digits :
       {"", "0000000100000002", "00000001000000020000000g"}) {
    entry["block_crc32c"] = digits;
    EXPECT_TRUE(absl::IsInvalidArgument(FileFromJson(entry).status()))
        << digits;
  }
  entry = FileToJson(file);
  entry["block_bytes"] = 4096;
  EXPECT_TRUE(Fails(FileFromJson(entry).status(),
                    absl::StatusCode::kInvalidArgument, {"file f:"}));
}

TEST(ManifestJson, ErrorsNameTheTensorAndTheField) {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  json tensor = TensorToJson({"w", StoredDType::kF32, {4}, {{"f", "w"}}});
  tensor["dtype"] = "float";
  EXPECT_TRUE(Fails(TensorFromJson(tensor).status(), kInvalid,
                    {"tensor w: unknown dtype \"float\""}));
  tensor["dtype"] = "F32";
  tensor["shards"][0].erase("start");
  EXPECT_TRUE(Fails(TensorFromJson(tensor).status(), kInvalid,
                    {"tensor w: \"start\" is missing"}));
  json file = FileToJson({"f", 1, 2});
  for (const char* crc : {"", "123", "0123456g", "0123456789"}) {
    file["crc32c"] = crc;
    EXPECT_TRUE(Fails(FileFromJson(file).status(), kInvalid,
                      {"file f: \"crc32c\" must be 8 hexadecimal digits"}));
  }
  EXPECT_FALSE(FileFromJson(json(1)).ok());
}

}  // namespace
}  // namespace troupe
