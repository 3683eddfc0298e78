#include "storage/dataset/data_file.h"

#include <filesystem>

#include "gtest/gtest.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

TEST(DataFile, ReadsPieces) {
  TempDir dir;
  WriteText(dir.File("a"), "hello");
  auto file = DataFile::Open(dir.File("a"));
  ASSERT_TRUE(file.ok()) << file.status();
  const DataFile moved = *std::move(file);
  EXPECT_EQ(moved.path(), dir.File("a"));
  EXPECT_EQ(moved.size(), 5u);
  char piece[4] = {};
  ASSERT_TRUE(moved.Read(1, 3, piece).ok());
  EXPECT_EQ(std::string(piece), "ell");
  EXPECT_TRUE(moved.Read(5, 0, piece).ok());
}

// A mapped file would end the process here, with SIGBUS.
TEST(DataFile, WhatShrinksMeanwhileIsAnError) {
  TempDir dir;
  WriteText(dir.File("a"), std::string(100'000, 'x'));
  const auto file = DataFile::Open(dir.File("a"));
  ASSERT_TRUE(file.ok());
  std::filesystem::resize_file(dir.File("a"), 50'000);
  std::string piece(10, '\0');
  EXPECT_TRUE(file->Read(49'990, 10, piece.data()).ok());
  EXPECT_TRUE(Fails(
      file->Read(49'991, 10, piece.data()), absl::StatusCode::kDataLoss,
      {dir.File("a") + ": offset 49991", "100000 bytes", "put the file back"}));
}

// The first page of a process is nowhere.
TEST(DataFile, WhatTheDiskCannotReadIsAnErrorOfTheDisk) {
  const auto file = DataFile::Open("/proc/self/mem");
  ASSERT_TRUE(file.ok()) << file.status();
  std::string piece(10, '\0');
  EXPECT_TRUE(Fails(file->Read(7, 10, piece.data()),
                    absl::StatusCode::kUnavailable,
                    {"/proc/self/mem", "offset 7", "EIO"}));
}

TEST(DataFile, MayBeEmptyOrMissing) {
  TempDir dir;
  WriteText(dir.File("a"), "");
  EXPECT_EQ(DataFile::Open(dir.File("a"))->size(), 0u);
  EXPECT_TRUE(Fails(DataFile::Open(dir.File("no")).status(),
                    absl::StatusCode::kNotFound, {dir.File("no")}));
}

TEST(DataFile, FirstBytesAreWhatThereIs) {
  TempDir dir;
  WriteText(dir.File("a"), "hello");
  EXPECT_EQ(FirstBytes(dir.File("a"), 3), "hel");
  EXPECT_EQ(FirstBytes(dir.File("a"), 9), "hello");
  EXPECT_EQ(FirstBytes(dir.File("no"), 9), "");
  EXPECT_EQ(FirstBytes(dir.path(), 9), "");
}

}  // namespace
}  // namespace troupe
