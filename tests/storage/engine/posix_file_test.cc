#include "storage/engine/posix_file.h"

#include <sys/stat.h>

#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

TEST(PosixFile, ReadsWholeFiles) {
  TempDir dir;
  const std::string path = dir.File("f");
  WriteText(path, "text");
  EXPECT_EQ(*ReadWholeFile(path, 4), "text");
  EXPECT_TRUE(Fails(ReadWholeFile(path, 3).status(),
                    absl::StatusCode::kOutOfRange, {path, "has 4 bytes"}));
}

TEST(PosixFile, ErrorsNameThePath) {
  TempDir dir;
  EXPECT_TRUE(Fails(PosixFile::Open(dir.File("no"), IoMode::kRead).status(),
                    absl::StatusCode::kNotFound, {dir.File("no"), "open"}));
  EXPECT_TRUE(Fails(PosixFile::Open(dir.path(), IoMode::kCreate).status(),
                    absl::StatusCode::kFailedPrecondition, {"EISDIR"}));
  absl::StatusOr<PosixFile> full =
      PosixFile::Open("/dev/full", IoMode::kReadWrite);
  ASSERT_TRUE(full.ok()) << full.status();
  EXPECT_TRUE(Fails(full->WriteAt(0, "x"), absl::StatusCode::kResourceExhausted,
                    {"/dev/full"}));
}

TEST(PosixFile, DoesNotWaitForThePipeOfNobody) {
  TempDir dir;
  ASSERT_EQ(mkfifo(dir.File("pipe").c_str(), 0600), 0);
  EXPECT_TRUE(Fails(PosixFile::Open(dir.File("pipe"), IoMode::kRead).status(),
                    absl::StatusCode::kInvalidArgument,
                    {dir.File("pipe"), "is a pipe"}));
}

TEST(PosixFile, MovesItsDescriptor) {
  TempDir dir;
  absl::StatusOr<PosixFile> opened =
      PosixFile::Open(dir.File("f"), IoMode::kCreate);
  ASSERT_TRUE(opened.ok());
  PosixFile file = *std::move(opened);
  EXPECT_EQ(opened->fd(), -1);
  EXPECT_TRUE(file.WriteAt(2, "ab").ok());
  char bytes[4];
  EXPECT_TRUE(file.ReadAt(0, 4, bytes).ok());
  EXPECT_EQ(std::string(bytes, 4), std::string("\0\0ab", 4));
  EXPECT_EQ(*file.Size(), 4u);
  EXPECT_TRUE(file.Close().ok());
}

}  // namespace
}  // namespace troupe
