#include "storage/dataset/troupe_file.h"

#include <filesystem>

#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "proto/base/crc32c.h"
#include "storage/dataset/token_file.h"
#include "storage/dataset/token_file_writer.h"
#include "storage/engine/little_endian.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

class TroupeFileTest : public ::testing::Test {
 protected:
  // `count` tokens: 3 i modulo the vocabulary.
  void Write(uint64_t vocab_size, int count) {
    auto writer = TokenFileWriter::Create(
        {.path = path_, .vocab_size = vocab_size, .tokenizer = "bytes"});
    CHECK_OK(writer.status());
    std::vector<int32_t> tokens(count);
    for (int i = 0; i < count; ++i) {
      tokens[i] = static_cast<int32_t>(3 * i % vocab_size);
    }
    CHECK_OK((*writer)->Append(tokens));
    CHECK_OK((*writer)->Finish().status());
  }

  absl::Status OpenStatus() { return TokenFile::Open(path_).status(); }

  TempDir dir_;
  const std::string path_ = dir_.File("demo.tokens");
};

TEST_F(TroupeFileTest, ReadsBackAtEveryWidth) {
  for (const uint64_t vocab :
       {uint64_t{1}, uint64_t{256}, uint64_t{257}, uint64_t{65536},
        uint64_t{65537}, uint64_t{1} << 31}) {
    Write(vocab, 1000);
    const auto file = TokenFile::Open(path_);
    ASSERT_TRUE(file.ok()) << file.status().ToString();
    EXPECT_EQ(file->size(), 1000u);
    EXPECT_EQ(file->layout().vocab_size, vocab);
    EXPECT_EQ(file->layout().tokenizer, "bytes");
    EXPECT_TRUE(file->Verify().ok());
    int32_t out[3];
    ASSERT_TRUE(file->Read(500, 3, out).ok());
    EXPECT_EQ(out[2], static_cast<int32_t>(3 * 502 % vocab));
    EXPECT_EQ(std::filesystem::file_size(path_),
              64 + 1000 * BytesPerToken(vocab));
  }
  EXPECT_EQ(BytesPerToken(256), 1u);
  EXPECT_EQ(BytesPerToken(257), 2u);
  EXPECT_EQ(BytesPerToken(65536), 2u);
  EXPECT_EQ(BytesPerToken(65537), 4u);
}

TEST_F(TroupeFileTest, TheEndIsTheEnd) {
  Write(256, 10);
  const auto file = TokenFile::Open(path_);
  int32_t out[10];
  EXPECT_TRUE(file->Read(0, 10, out).ok());
  EXPECT_TRUE(file->Read(10, 0, out).ok());
  EXPECT_TRUE(Fails(file->Read(1, 10, out), absl::StatusCode::kOutOfRange,
                    {path_, "has 10 tokens, asked for 10 from 1"}));
  EXPECT_FALSE(file->Read(UINT64_MAX, 2, out).ok());
}

TEST_F(TroupeFileTest, AnEmptyFileIsAFile) {
  Write(256, 0);
  const auto file = TokenFile::Open(path_);
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(file->Verify().ok());
}

TEST_F(TroupeFileTest, EveryTruncationAndEveryFlippedBitIsFound) {
  Write(300, 20);
  const std::string whole = ReadText(path_);
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    WriteText(path_, whole.substr(0, bytes));
    EXPECT_TRUE(
        Fails(OpenStatus(), absl::StatusCode::kDataLoss, {path_, "offset"}))
        << bytes;
  }
  WriteText(path_, whole + "x");
  EXPECT_TRUE(Fails(OpenStatus(), absl::StatusCode::kDataLoss,
                    {"offset 104", "something follows"}));
  for (size_t at = 0; at < whole.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = whole;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      WriteText(path_, flipped);
      const auto file = TokenFile::Open(path_);
      EXPECT_EQ(file.ok(), at >= 64) << at;
      if (file.ok()) {
        EXPECT_FALSE(file->Verify().ok()) << at;
      }
    }
  }
}

TEST_F(TroupeFileTest, ErrorsSayWhatIsWrong) {
  EXPECT_TRUE(Fails(OpenStatus(), absl::StatusCode::kNotFound, {path_}));
  WriteText(path_, std::string(100, 'a'));
  EXPECT_TRUE(Fails(OpenStatus(), absl::StatusCode::kDataLoss,
                    {"offset 0: no token file", "troupe data prepare"}));
  Write(256, 10);
  std::string bytes = ReadText(path_);
  bytes[8] = 2;
  WriteText(path_, bytes);
  EXPECT_TRUE(Fails(OpenStatus(), absl::StatusCode::kDataLoss,
                    {"offset 8: version 2"}));
}

TEST_F(TroupeFileTest, AHeaderThatContradictsItselfIsRefused) {
  TokenFileHeader header = {.bytes_per_token = 1,
                            .vocab_size = 300,
                            .token_count = 0,
                            .tokenizer = "bytes"};
  WriteText(path_, FormatTokenFileHeader(header));
  EXPECT_TRUE(Fails(OpenStatus(), absl::StatusCode::kDataLoss,
                    {"offset 12", "takes 2"}));
  header.vocab_size = 0;
  WriteText(path_, FormatTokenFileHeader(header));
  EXPECT_TRUE(Fails(OpenStatus(), absl::StatusCode::kDataLoss,
                    {"offset 16: vocabulary size 0"}));
  header = {.bytes_per_token = 1,
            .vocab_size = 256,
            .token_count = UINT64_MAX,
            .tokenizer = "bytes"};
  WriteText(path_, FormatTokenFileHeader(header));
  EXPECT_TRUE(Fails(OpenStatus(), absl::StatusCode::kDataLoss, {"offset 24"}));
}

TEST_F(TroupeFileTest, TokensOutsideTheVocabularyAreNamed) {
  // A sound file by its checksums, with token 7 = 200 in a vocabulary of 100.
  std::string tokens(10, '\1');
  tokens[7] = static_cast<char>(200);
  const TokenFileHeader header = {.bytes_per_token = 1,
                                  .vocab_size = 100,
                                  .token_count = 10,
                                  .data_crc32c = Crc32c(tokens),
                                  .tokenizer = "bytes"};
  WriteText(path_, FormatTokenFileHeader(header) + tokens);
  const auto file = TokenFile::Open(path_);
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  int32_t out[10];
  EXPECT_TRUE(file->Read(0, 7, out).ok());
  for (const absl::Status& status : {file->Read(5, 5, out), file->Verify()}) {
    EXPECT_TRUE(
        Fails(status, absl::StatusCode::kDataLoss,
              {path_, "offset 71: token 7 is 200", "the vocabulary has 100"}));
  }
}

}  // namespace
}  // namespace troupe
