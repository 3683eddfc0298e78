#include "storage/dataset/token_file_writer.h"

#include <algorithm>
#include <filesystem>

#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "storage/dataset/token_file.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

int Entries(const TempDir& dir) {
  return static_cast<int>(
      std::distance(fs::directory_iterator(dir.path()), {}));
}

TEST(TokenFileWriter, NothingIsThereBeforeFinishAndNothingAsideAfter) {
  TempDir dir;
  const std::string path = dir.File("t");
  auto writer = TokenFileWriter::Create(
      {.path = path, .vocab_size = 10, .tokenizer = "x"});
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE((*writer)->Append({1, 2, 9}).ok());
  EXPECT_FALSE(fs::exists(path));
  ASSERT_TRUE((*writer)->Finish().ok());
  writer->reset();
  EXPECT_EQ(TokenFile::Open(path)->size(), 3u);
  EXPECT_EQ(Entries(dir), 1);
}

TEST(TokenFileWriter, GivenUpItLeavesNothing) {
  TempDir dir;
  {
    auto writer = TokenFileWriter::Create(
        {.path = dir.File("t"), .vocab_size = 10, .tokenizer = "x"});
    ASSERT_TRUE((*writer)->Append({1}).ok());
  }
  EXPECT_EQ(Entries(dir), 0);
}

// Which tokens count, at random, in a file that is cut at random and continued.
TEST(TokenFileWriter, SaysWhatCountsWhereverItWasKilled) {
  TempDir dir;
  const std::string path = dir.File("t");
  const TokenFileWriterOptions options = {.path = path,
                                          .vocab_size = 1000,
                                          .tokenizer = "x",
                                          .source = "s",
                                          .says_what_counts = true,
                                          .packed_length = 4};
  uint32_t random = 1;
  const auto next = [&](uint32_t below) {
    random = random * 1664525 + 1013904223;
    return (random >> 8) % below;
  };
  std::vector<int32_t> tokens;
  std::vector<bool> counts;
  auto writer = TokenFileWriter::Create(options);
  ASSERT_TRUE(writer.ok()) << writer.status();
  for (int round = 0; round < 300; ++round) {
    const size_t length = 1 + next(20);
    std::vector<int32_t> ids;
    std::vector<uint8_t> bits;
    for (size_t i = 0; i < length; ++i) {
      ids.push_back(static_cast<int32_t>(next(1000)));
      bits.push_back(static_cast<uint8_t>(next(2)));
      counts.push_back(i > 0 && bits.back() == 1);
    }
    tokens.insert(tokens.end(), ids.begin(), ids.end());
    ASSERT_TRUE((*writer)->Append(ids, bits).ok());
    ASSERT_TRUE((*writer)->EndDocument().ok());
    if (next(4) > 0) continue;
    ASSERT_TRUE((*writer)->Save("here").ok());
    // Lost: it is behind what was saved.
    ASSERT_TRUE((*writer)->Append({1, 2, 3}, {1, 1, 1}).ok());
    ASSERT_TRUE((*writer)->Sync().ok());
    writer = absl::StatusOr<std::unique_ptr<TokenFileWriter>>(nullptr);
    writer = TokenFileWriter::Create(options);
    ASSERT_TRUE(writer.ok()) << writer.status();
    ASSERT_EQ((*writer)->position(), "here") << (*writer)->begun_anew();
  }
  const auto header = (*writer)->Finish();
  ASSERT_TRUE(header.ok()) << header.status();
  const auto file = TokenFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(file->Verify().ok()) << file->Verify();
  ASSERT_EQ(file->size(), tokens.size());
  EXPECT_EQ(file->layout().packed_length, 4u);
  const auto ones = std::count(counts.begin(), counts.end(), true);
  EXPECT_EQ(file->layout().counted->tokens, ones);
  EXPECT_EQ(header->counted->tokens, ones);
  for (uint64_t first = 0; first < tokens.size(); first += 7) {
    const uint64_t count = std::min<uint64_t>(100, tokens.size() - first);
    bool read[100];
    ASSERT_TRUE(file->ReadCounted(first, count, read).ok());
    for (uint64_t i = 0; i < count; ++i) {
      ASSERT_EQ(read[i], counts[first + i]) << first + i;
    }
    EXPECT_EQ(file->CountCounted(first, count).value(),
              std::count(read, read + count, true));
  }
  EXPECT_EQ(file->CountCounted(0, file->size()).value(), ones);
}

TEST(TokenFileWriter, WhatCountsIsPartOfTheIdentity) {
  TempDir dir;
  std::vector<std::string> identities;
  for (const uint8_t bit : {0, 1}) {
    auto writer = TokenFileWriter::Create({.path = dir.File("t"),
                                           .vocab_size = 10,
                                           .tokenizer = "x",
                                           .says_what_counts = true});
    ASSERT_TRUE((*writer)->Append({1, 2, 3}, {0, bit, 1}).ok());
    ASSERT_TRUE((*writer)->Finish().ok());
    identities.push_back(TokenFile::Open(dir.File("t"))->identity());
  }
  EXPECT_NE(identities[0].find("of which 1 count"), std::string::npos);
  EXPECT_NE(identities[1].find("of which 2 count"), std::string::npos);
}

TEST(TokenFileWriter, RefusesWhatTheFormatCannotHold) {
  TempDir dir;
  const std::string path = dir.File("t");
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_TRUE(Fails(TokenFileWriter::Create({path, 0, "x"}).status(), kInvalid,
                    {"vocabulary size 0"}));
  EXPECT_FALSE(
      TokenFileWriter::Create({path, (uint64_t{1} << 31) + 1, "x"}).ok());
  EXPECT_FALSE(TokenFileWriter::Create({path, 10, ""}).ok());
  EXPECT_FALSE(TokenFileWriter::Create({path, 10, std::string(25, 'x')}).ok());
  auto writer = TokenFileWriter::Create({path, 10, std::string(24, 'x')});
  EXPECT_TRUE(Fails((*writer)->Append({1, 2, 10}), kInvalid,
                    {"token number 2 is 10", "the vocabulary has 10"}));
  EXPECT_FALSE((*writer)->Append({-1}).ok());
  EXPECT_TRUE(
      Fails(TokenFileWriter::Create({dir.File("no/t"), 10, "x"}).status(),
            absl::StatusCode::kNotFound, {dir.File("no/t")}));
}

}  // namespace
}  // namespace troupe
