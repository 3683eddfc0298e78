#include "storage/checkpoint/assets.h"

#include <filesystem>

#include "gtest/gtest.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "tests/storage/checkpoint/small_checkpoint.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

absl::StatusOr<std::string> Commit(const std::string& dir,
                                   const std::vector<CarriedFile>& carried) {
  const CheckpointAttempt attempt = {dir, 50, "a"};
  CHECK_OK(BeginCheckpoint(attempt).status());
  const auto shards = WriteSmallShards(attempt, 0, 1);
  CHECK_OK(shards.status());
  return CommitCheckpoint(attempt, SmallManifest(50), {*shards}, carried);
}

TEST(Assets, TravelWithTheirCheckpoint) {
  TempDir dir;
  const std::string binary("\0\xff\n", 3);
  const auto path =
      Commit(dir.path(), {{"tokenizer.model", binary}, {"config.json", "{}"}});
  ASSERT_TRUE(path.ok()) << path.status().ToString();
  const std::string moved = dir.File("moved");
  fs::rename(*path, moved);
  EXPECT_EQ(*ReadCarriedFile(moved, "tokenizer.model"), binary);
  EXPECT_EQ(*ReadCarriedFile(moved, "config.json"), "{}");
  EXPECT_EQ(*CarriedFilePath(moved, "config.json"),
            moved + "/assets/config.json");
  const auto manifest = CheckCheckpoint(moved, CheckDepth::kChecksums);
  ASSERT_TRUE(manifest.ok()) << manifest.status().ToString();
  ASSERT_EQ(manifest->assets.size(), 2u);
  EXPECT_EQ(manifest->assets[1].name, "tokenizer.model");
  EXPECT_EQ(manifest->assets[1].bytes, 3u);
}

TEST(Assets, ACheckpointMayHaveNone) {
  TempDir dir;
  const auto path = Commit(dir.path(), {});
  ASSERT_TRUE(path.ok());
  EXPECT_FALSE(fs::exists(*path + "/assets"));
  EXPECT_TRUE(Fails(CarriedFilePath(*path, "config.json").status(),
                    absl::StatusCode::kNotFound,
                    {*path, "carries no file config.json"}));
  EXPECT_TRUE(absl::IsNotFound(
      CarriedFilePath(dir.File("none"), "config.json").status()));
}

TEST(Assets, DamageIsFound) {
  TempDir dir;
  const auto path = Commit(dir.path(), {{"vocab.json", "abc"}});
  ASSERT_TRUE(path.ok());
  const std::string file = AssetPath(*path, "vocab.json");
  const auto check = [&](CheckDepth depth) {
    return CheckCheckpoint(*path, depth).status();
  };
  WriteText(file, "abd");
  EXPECT_TRUE(check(CheckDepth::kSizes).ok());
  EXPECT_TRUE(Fails(check(CheckDepth::kChecksums), absl::StatusCode::kDataLoss,
                    {file, "CRC-32C"}));
  EXPECT_TRUE(Fails(ReadCarriedFile(*path, "vocab.json").status(),
                    absl::StatusCode::kDataLoss, {file, "CRC-32C"}));
  WriteText(file, "ab");
  EXPECT_TRUE(Fails(check(CheckDepth::kSizes), absl::StatusCode::kDataLoss,
                    {file, "the manifest says 3"}));
  fs::remove(file);
  EXPECT_TRUE(Fails(ReadCarriedFile(*path, "vocab.json").status(),
                    absl::StatusCode::kDataLoss, {file, "is missing"}));
}

TEST(Assets, NamesStayInTheirFolder) {
  TempDir dir;
  for (const char* name : {"", "../up", "a/b", ".hidden"}) {
    EXPECT_TRUE(Fails(Commit(dir.path(), {{name, "x"}}).status(),
                      absl::StatusCode::kInvalidArgument, {"assets: "}))
        << name;
  }
  EXPECT_TRUE(Fails(Commit(dir.path(), {{"a", "x"}, {"a", "y"}}).status(),
                    absl::StatusCode::kInvalidArgument,
                    {"file a is there twice"}));
  EXPECT_TRUE(ListCheckpoints(dir.path())->empty());
}

}  // namespace
}  // namespace troupe
