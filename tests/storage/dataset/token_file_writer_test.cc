#include "storage/dataset/token_file_writer.h"

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
