#include "storage/checkpoint/check_file.h"

#include "gtest/gtest.h"
#include "proto/base/crc32c.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

TEST(CheckFile, LooksAsDeepAsItIsTold) {
  TempDir dir;
  const std::string path = dir.File("shard");
  const std::string bytes(3 << 20, 'a');  // more than one read
  const ManifestFile want = {"shard", bytes.size(), Crc32c(bytes)};
  WriteText(path, bytes);
  EXPECT_TRUE(CheckFile(path, want, CheckDepth::kSizes).ok());
  EXPECT_TRUE(CheckFile(path, want, CheckDepth::kChecksums).ok());

  std::string flipped = bytes;
  flipped[2 << 20] ^= 1;
  WriteText(path, flipped);
  EXPECT_TRUE(CheckFile(path, want, CheckDepth::kSizes).ok());
  EXPECT_TRUE(Fails(CheckFile(path, want, CheckDepth::kChecksums),
                    absl::StatusCode::kDataLoss, {path, "CRC-32C is"}));
}

TEST(CheckFile, NamesWhatIsMissingOrShort) {
  TempDir dir;
  const std::string path = dir.File("shard");
  const ManifestFile want = {"shard", 4, Crc32c("four")};
  EXPECT_TRUE(Fails(CheckFile(path, want, CheckDepth::kSizes),
                    absl::StatusCode::kDataLoss, {path, "is missing"}));
  WriteText(path, "fou");
  EXPECT_TRUE(Fails(CheckFile(path, want, CheckDepth::kSizes),
                    absl::StatusCode::kDataLoss,
                    {path, "has 3 bytes, the manifest says 4"}));
}

}  // namespace
}  // namespace troupe
