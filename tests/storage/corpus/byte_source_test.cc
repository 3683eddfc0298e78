#include "storage/corpus/byte_source.h"

#include <filesystem>
#include <string>

#include "gtest/gtest.h"
#include "tests/storage/corpus/packed.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

class ByteSourceTest : public testing::Test {
 protected:
  // All of a file with these bytes, read in pieces of an odd size.
  absl::StatusOr<std::string> Read(const std::string& content,
                                   ByteSourceOptions options = {}) {
    options.path = dir_.File("file");
    WriteText(options.path, content);
    auto source = OpenByteSource(options);
    if (!source.ok()) return source.status();
    std::string all;
    char piece[777];
    while (true) {
      const auto got = (*source)->Read(piece, sizeof(piece));
      if (!got.ok()) return got.status();
      if (*got == 0) break;
      all.append(piece, *got);
    }
    EXPECT_EQ((*source)->taken(), content.size());
    return all;
  }

  // Whatever is cut off, from everything to the last byte.
  void EveryTruncationIsFound(const std::string& packed) {
    for (size_t bytes = 4; bytes < packed.size(); ++bytes) {
      EXPECT_TRUE(Fails(Read(packed.substr(0, bytes)).status(),
                        absl::StatusCode::kDataLoss,
                        {dir_.File("file"), "offset", "cut off"}))
          << bytes << " of " << packed.size();
    }
  }

  std::string Long() const {
    std::string text;
    for (int i = 0; text.size() < 700'000; ++i) {
      text += "line " + std::to_string(i * i) + "\n";
    }
    return text;
  }

  TempDir dir_;
};

TEST_F(ByteSourceTest, PlainFilesAreReadAsTheyAre) {
  for (const std::string& text : {std::string(), std::string("a"), Long()}) {
    EXPECT_EQ(*Read(text), text);
  }
}

TEST_F(ByteSourceTest, PackedFilesAreUnpacked) {
  for (const std::string& text : {std::string(), std::string("a"), Long()}) {
    EXPECT_EQ(*Read(Gzipped(text)), text);
    EXPECT_EQ(*Read(Zstded(text)), text);
    EXPECT_EQ(*Read(Gzipped(text), {.unpack = false}), Gzipped(text));
  }
}

TEST_F(ByteSourceTest, MembersAndFramesFollowEachOther) {
  const std::string text = Long();
  EXPECT_EQ(*Read(Gzipped("one ") + Gzipped("") + Gzipped(text)),
            "one " + text);
  EXPECT_EQ(*Read(Gzipped("padded") + std::string(1000, '\0')), "padded");
  // A frame to skip: magic, length, bytes.
  const std::string skipped =
      std::string("\x50\x2a\x4d\x18\x03\0\0\0", 8) + "abc";
  EXPECT_EQ(*Read(Zstded("one ") + skipped + Zstded(text)), "one " + text);
  EXPECT_EQ(*Read(skipped + Zstded("behind")), "behind");
}

TEST_F(ByteSourceTest, TruncationIsFoundWhereverItIs) {
  EveryTruncationIsFound(Gzipped("some words, some words, some words"));
  EveryTruncationIsFound(Zstded("some words, some words, some words"));
}

TEST_F(ByteSourceTest, DamageIsFound) {
  for (const std::string& sound : {Gzipped(Long()), Zstded(Long())}) {
    std::string damaged = sound;
    for (size_t i = 0; i < 16; ++i) damaged[sound.size() / 2 + i] ^= 0x55;
    EXPECT_TRUE(Fails(Read(damaged).status(), absl::StatusCode::kDataLoss,
                      {dir_.File("file"), "get the file again"}));
    EXPECT_TRUE(Fails(Read(sound + "text").status(),
                      absl::StatusCode::kDataLoss,
                      {"something else follows what is compressed"}));
  }
}

// What a small file unpacks to does not have to be held.
TEST_F(ByteSourceTest, AFileThatUnpacksToMuchIsReadInPieces) {
  const std::string mebibyte(1 << 20, '\0');
  std::string bomb;
  for (int i = 0; i < 256; ++i) bomb += Zstded(mebibyte);
  WriteText(dir_.File("bomb"), bomb);
  EXPECT_LT(bomb.size(), 64u << 10);
  auto source = OpenByteSource({.path = dir_.File("bomb")});
  ASSERT_TRUE(source.ok());
  char piece[4096];
  ASSERT_EQ(*(*source)->Read(piece, sizeof(piece)), sizeof(piece));
  EXPECT_EQ(FirstUnpackedBytes(dir_.File("bomb"), 100)->size(), 100u);
}

TEST_F(ByteSourceTest, AFileThatChangesIsNotTheOneThatWasFound) {
  const std::string path = dir_.File("file");
  EXPECT_TRUE(Fails(Read("abc", {.size = 3, .modified_ns = 12345}).status(),
                    absl::StatusCode::kFailedPrecondition,
                    {path, "changed while it was read"}));
}

TEST_F(ByteSourceTest, WhatIsNoFileIsRefused) {
  EXPECT_TRUE(Fails(OpenByteSource({.path = dir_.File("no")}).status(),
                    absl::StatusCode::kNotFound, {dir_.File("no")}));
  EXPECT_TRUE(Fails(OpenByteSource({.path = dir_.path()}).status(),
                    absl::StatusCode::kInvalidArgument, {"is a folder"}));
}

}  // namespace
}  // namespace troupe
