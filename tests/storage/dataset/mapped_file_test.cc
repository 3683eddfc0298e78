#include "storage/dataset/mapped_file.h"

#include "gtest/gtest.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

TEST(MappedFile, HoldsTheBytes) {
  TempDir dir;
  WriteText(dir.File("a"), "hello");
  auto file = MappedFile::Open(dir.File("a"));
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  EXPECT_EQ(file->path(), dir.File("a"));
  const MappedFile moved = *std::move(file);
  EXPECT_EQ(moved.bytes(), "hello");
}

TEST(MappedFile, MayBeEmptyOrMissing) {
  TempDir dir;
  WriteText(dir.File("a"), "");
  EXPECT_EQ(MappedFile::Open(dir.File("a"))->bytes(), "");
  EXPECT_TRUE(Fails(MappedFile::Open(dir.File("no")).status(),
                    absl::StatusCode::kNotFound, {dir.File("no")}));
}

TEST(MappedFile, FirstBytesAreWhatThereIs) {
  TempDir dir;
  WriteText(dir.File("a"), "hello");
  EXPECT_EQ(FirstBytes(dir.File("a"), 3), "hel");
  EXPECT_EQ(FirstBytes(dir.File("a"), 9), "hello");
  EXPECT_EQ(FirstBytes(dir.File("no"), 9), "");
  EXPECT_EQ(FirstBytes(dir.path(), 9), "");
}

}  // namespace
}  // namespace troupe
