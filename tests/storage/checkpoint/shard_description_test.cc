#include "storage/checkpoint/shard_description.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "proto/base/crc32c.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

constexpr auto kLost = absl::StatusCode::kDataLoss;

ShardFile Example(int tensors) {
  ShardFile shard = {.data_unchecked = true};
  shard.file = {
      .name = "rank-00007.safetensors", .bytes = 123, .crc32c = 0xabcdef01};
  for (int i = tensors; i > 0; --i) {
    const std::string name = absl::StrCat("tensor.", 1000 + i);
    shard.tensors.push_back(
        {.name = name,
         .dtype = StoredDType::kF32,
         .shape = {7, i},
         .shards = {{shard.file.name, name, {{0, 0}, {3, i}}}}});
  }
  return shard;
}

// All of it; or the first error.
absl::StatusOr<ShardFile> ReadAll(const std::string& directory,
                                  const ShardReceipt& receipt) {
  auto reader = DescriptionReader::Open(directory, receipt);
  if (!reader.ok()) return reader.status();
  ShardFile shard = {.data_unchecked = reader->data_unchecked()};
  shard.file = reader->TakeFile();
  while (true) {
    auto tensor = reader->Next();
    if (!tensor.ok()) return tensor.status();
    if (!tensor->has_value()) return shard;
    shard.tensors.push_back(**std::move(tensor));
  }
}

// What a receipt would say of this text.
ShardReceipt ReceiptOf(const TempDir& dir, const std::string& text) {
  WriteText(dir.File("d"), text);
  return {.file = "rank-00007.safetensors",
          .bytes = 123,
          .description = "d",
          .description_bytes = text.size(),
          .description_crc32c = Crc32c(text)};
}

// Of many buffers, too.
TEST(ShardDescription, ComesBackByName) {
  TempDir dir;
  for (const int tensors : {0, 1, 2000}) {
    const auto receipt = WriteDescription(dir.path(), Example(tensors));
    ASSERT_TRUE(receipt.ok()) << receipt.status();
    EXPECT_EQ(receipt->file, "rank-00007.safetensors");
    EXPECT_EQ(receipt->bytes, 123u);
    EXPECT_EQ(receipt->description, "rank-00007.shard.jsonl");
    const auto shard = ReadAll(dir.path(), *receipt);
    ASSERT_TRUE(shard.ok()) << shard.status();
    EXPECT_EQ(shard->file.crc32c, 0xabcdef01u);
    EXPECT_TRUE(shard->data_unchecked);
    ASSERT_EQ(shard->tensors.size(), static_cast<size_t>(tensors));
    for (int i = 0; i < tensors; ++i) {
      const ManifestTensor& tensor = shard->tensors[i];
      EXPECT_EQ(tensor.name, absl::StrCat("tensor.", 1001 + i));
      EXPECT_EQ(tensor.shape, (std::vector<int64_t>{7, i + 1}));
      EXPECT_EQ(tensor.shards[0].box.shape, (std::vector<int64_t>{3, i + 1}));
    }
  }
}

TEST(ShardDescription, EveryTruncationAndEveryFlippedBitIsFound) {
  TempDir dir;
  const auto receipt = WriteDescription(dir.path(), Example(2));
  ASSERT_TRUE(receipt.ok()) << receipt.status();
  const std::string path = dir.File(receipt->description);
  const std::string whole = ReadText(path);
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] ^= 4;
    WriteText(path, damaged);
    EXPECT_TRUE(Fails(ReadAll(dir.path(), *receipt).status(), kLost, {path}));
    WriteText(path, whole.substr(0, i));
    EXPECT_TRUE(Fails(ReadAll(dir.path(), *receipt).status(), kLost, {path}));
  }
}

TEST(ShardDescription, IsReadWithoutTrust) {
  TempDir dir;
  const std::string head =
      R"({"file": {"name": "rank-00007.safetensors", "bytes": 123, )"
      R"("crc32c": "00000000"}})"
      "\n";
  const auto tensor = [](const std::string& name) {
    return absl::StrCat(R"({"name": ")", name,
                        R"(", "dtype": "F32", "shape": [1], "shards": []})",
                        "\n");
  };
  const auto read = [&](const std::string& text) {
    return ReadAll(dir.path(), ReceiptOf(dir, text)).status();
  };
  EXPECT_TRUE(read(head + tensor("a") + tensor("b")).ok());
  EXPECT_TRUE(Fails(read(""), kLost, {dir.File("d")}));
  EXPECT_TRUE(Fails(read("{}\n"), kLost, {"\"file\" is missing"}));
  EXPECT_TRUE(Fails(read(head + "{}\n"), kLost, {"\"name\""}));
  EXPECT_TRUE(Fails(read(head + tensor("b") + tensor("a")), kLost,
                    {"tensor a comes after b"}));
  EXPECT_TRUE(Fails(read(head + tensor("a") + "{\"name\""), kLost, {}));
  ShardReceipt other = ReceiptOf(dir, head);
  other.file = "rank-00008.safetensors";
  EXPECT_TRUE(Fails(ReadAll(dir.path(), other).status(), kLost,
                    {"it is of rank-00007.safetensors"}));
  other.description = "missing";
  EXPECT_EQ(ReadAll(dir.path(), other).status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace troupe
