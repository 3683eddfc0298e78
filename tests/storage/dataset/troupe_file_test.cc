#include "storage/dataset/troupe_file.h"

#include <algorithm>
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
              128 + 1000 * BytesPerToken(vocab));
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
                    {"offset 168", "something follows"}));
  for (size_t at = 0; at < whole.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = whole;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      WriteText(path_, flipped);
      const auto file = TokenFile::Open(path_);
      EXPECT_EQ(file.ok(), at >= 128) << at;
      if (file.ok()) {
        EXPECT_FALSE(file->Verify().ok()) << at;
      }
    }
  }
}

// Of version 3, whose last bytes say which tokens count.
TEST_F(TroupeFileTest, EveryFlippedBitOfWhatCountsIsFound) {
  auto writer = TokenFileWriter::Create({.path = path_,
                                         .vocab_size = 300,
                                         .tokenizer = "bytes",
                                         .says_what_counts = true});
  CHECK_OK(writer.status());
  const std::vector<int32_t> tokens(20, 7);
  std::vector<uint8_t> counts(20, 0);
  for (const int i : {0, 1, 8, 19}) counts[i] = 1;
  CHECK_OK((*writer)->Append(tokens, counts));
  CHECK_OK((*writer)->EndDocument());
  CHECK_OK((*writer)->Finish().status());
  const std::string whole = ReadText(path_);
  ASSERT_EQ(whole.size(), 128 + 40 + 8 + 3);
  EXPECT_EQ(whole[8], 3);
  EXPECT_EQ(whole.substr(whole.size() - 3), "\x02\x01\x08");
  EXPECT_TRUE(TokenFile::Open(path_)->Verify().ok());
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    WriteText(path_, whole.substr(0, bytes));
    EXPECT_TRUE(
        Fails(OpenStatus(), absl::StatusCode::kDataLoss, {path_, "offset"}));
  }
  for (size_t at = 0; at < whole.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = whole;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      WriteText(path_, flipped);
      const auto file = TokenFile::Open(path_);
      EXPECT_EQ(file.ok(), at >= 128) << at;
      if (!file.ok()) continue;
      EXPECT_FALSE(file->Verify().ok()) << at;
      // What a job looks at while it trains.
      const bool is_of_tokens = at < 168 || at >= 176;
      EXPECT_EQ(file->CheckSum([] { return true; }).ok(), !is_of_tokens) << at;
    }
  }
}

TEST_F(TroupeFileTest, WithoutWhatCountsItIsOfVersion2) {
  Write(256, 10);
  EXPECT_EQ(ReadText(path_)[8], 2);
  const auto file = TokenFile::Open(path_);
  EXPECT_FALSE(file->has_counted());
  bool counts[10] = {};
  ASSERT_TRUE(file->ReadCounted(0, 10, counts).ok());
  EXPECT_EQ(std::count(counts, counts + 10, true), 10);
  EXPECT_EQ(file->CountCounted(3, 7).value(), 7u);
  EXPECT_TRUE(Fails(file->CountCounted(3, 8).status(),
                    absl::StatusCode::kOutOfRange, {path_}));
}

TEST_F(TroupeFileTest, ErrorsSayWhatIsWrong) {
  EXPECT_TRUE(Fails(OpenStatus(), absl::StatusCode::kNotFound, {path_}));
  WriteText(path_, std::string(100, 'a'));
  EXPECT_TRUE(Fails(OpenStatus(), absl::StatusCode::kDataLoss,
                    {"offset 0: no token file", "troupe data prepare"}));
  Write(256, 10);
  std::string bytes = ReadText(path_);
  bytes[8] = 4;
  WriteText(path_, bytes);
  EXPECT_TRUE(Fails(OpenStatus(), absl::StatusCode::kDataLoss,
                    {"offset 8: version 4", "up to version 3"}));
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
  WriteText(path_,
            FormatTokenFileHeader(header) + tokens + std::string(6, '\0'));
  const auto file = TokenFile::Open(path_);
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  int32_t out[10];
  EXPECT_TRUE(file->Read(0, 7, out).ok());
  for (const absl::Status& status : {file->Read(5, 5, out), file->Verify()}) {
    EXPECT_TRUE(
        Fails(status, absl::StatusCode::kDataLoss,
              {path_, "offset 135: token 7 is 200", "the vocabulary has 100"}));
  }
}

// As files of version 1 are, which had a shorter header and no documents.
TEST_F(TroupeFileTest, ReadsVersion1) {
  const std::string tokens = "hello";
  std::string bytes(64, '\0');
  bytes.replace(0, 8, kTokenFileMagic);
  StoreLittleEndian<uint32_t>(1, &bytes[8]);
  StoreLittleEndian<uint32_t>(1, &bytes[12]);
  StoreLittleEndian<uint64_t>(256, &bytes[16]);
  StoreLittleEndian<uint64_t>(tokens.size(), &bytes[24]);
  StoreLittleEndian<uint32_t>(Crc32c(tokens), &bytes[32]);
  bytes.replace(36, 5, "bytes");
  StoreLittleEndian<uint32_t>(Crc32c({bytes.data(), 60}), &bytes[60]);
  WriteText(path_, bytes + tokens);
  const auto file = TokenFile::Open(path_);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(file->Verify().ok()) << file->Verify();
  EXPECT_EQ(file->size(), 5u);
  EXPECT_EQ(file->layout().tokenizer, "bytes");
  EXPECT_EQ(file->layout().documents, 0u);
  EXPECT_TRUE(Fails(file->DocumentEnds(0, 5).status(),
                    absl::StatusCode::kUnimplemented,
                    {path_, "does not say where its documents end"}));
  const std::string identity = file->identity();
  WriteText(path_, bytes + "hellO");
  EXPECT_FALSE(TokenFile::Open(path_)->Verify().ok());
  // The same tokens of version 2 are the same to a checkpoint.
  auto writer = TokenFileWriter::Create(
      {.path = path_, .vocab_size = 256, .tokenizer = "bytes"});
  ASSERT_TRUE((*writer)->Append({'h', 'e', 'l', 'l', 'o'}).ok());
  ASSERT_TRUE((*writer)->EndDocument().ok());
  ASSERT_TRUE((*writer)->Finish().ok());
  EXPECT_EQ(TokenFile::Open(path_)->identity(), identity);
  for (size_t cut = 0; cut < bytes.size() + 5; ++cut) {
    WriteText(path_, (bytes + tokens).substr(0, cut));
    EXPECT_TRUE(
        Fails(OpenStatus(), absl::StatusCode::kDataLoss, {path_, "offset"}));
  }
}

TEST_F(TroupeFileTest, DocumentsAreFound) {
  auto writer = TokenFileWriter::Create(
      {.path = path_, .vocab_size = 300, .tokenizer = "x"});
  const std::vector<uint64_t> ends = {3, 4, 9, 10, 40, 41};
  uint64_t tokens = 0;
  for (const uint64_t end : ends) {
    for (; tokens < end; ++tokens) ASSERT_TRUE((*writer)->Append({1}).ok());
    ASSERT_TRUE((*writer)->EndDocument().ok());
    ASSERT_TRUE((*writer)->EndDocument().ok()) << "none without tokens";
  }
  ASSERT_TRUE((*writer)->Finish().ok());
  const TokenFile file = TokenFile::Open(path_).value();
  EXPECT_TRUE(file.Verify().ok()) << file.Verify();
  EXPECT_EQ(file.layout().documents, ends.size());
  for (uint64_t first = 0; first <= 41; ++first) {
    for (uint64_t count = 0; first + count <= 41; ++count) {
      std::vector<uint64_t> want;
      for (const uint64_t end : ends) {
        if (end > first && end <= first + count) want.push_back(end);
      }
      ASSERT_EQ(*file.DocumentEnds(first, count), want)
          << first << " " << count;
    }
  }
  EXPECT_TRUE(absl::IsOutOfRange(file.DocumentEnds(40, 2).status()));
  // Ends that are damaged are found when the file is verified.
  const std::string whole = ReadText(path_);
  for (size_t at = whole.size() - 8 * ends.size(); at < whole.size(); ++at) {
    std::string flipped = whole;
    flipped[at] ^= 2;
    WriteText(path_, flipped);
    EXPECT_FALSE(TokenFile::Open(path_)->Verify().ok()) << at;
  }
}

}  // namespace
}  // namespace troupe
