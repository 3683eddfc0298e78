#include "storage/dataset/token_file.h"

#include <vector>

#include "gtest/gtest.h"
#include "storage/dataset/token_file_writer.h"
#include "tests/storage/dataset/foreign_files.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

std::vector<int32_t> ReadAll(const TokenFile& file) {
  std::vector<int32_t> ids(file.size());
  const absl::Status read = file.Read(0, ids.size(), ids.data());
  EXPECT_TRUE(read.ok()) << read.ToString();
  return ids;
}

class TokenFileTest : public ::testing::Test {
 protected:
  // 1 2 3 4 5 6 of which 4 5 6 come first in the .bin.
  std::string Megatron(int code, const std::string& bin, int64_t bytes) {
    const std::string prefix = dir_.File("megatron");
    WriteText(prefix + ".bin", bin);
    WriteText(prefix + ".idx", MegatronIndexBytes({.code = code,
                                                   .lengths = {3, 3},
                                                   .pointers = {3 * bytes, 0},
                                                   .documents = {0, 1, 2}}));
    return prefix;
  }

  TempDir dir_;
};

TEST_F(TokenFileTest, FormatsAreToldApartByContent) {
  const std::string ours = dir_.File("a.bin");
  auto writer = TokenFileWriter::Create(
      {.path = ours, .vocab_size = 10, .tokenizer = "x"});
  ASSERT_TRUE((*writer)->Append({1, 2, 3}).ok());
  ASSERT_TRUE((*writer)->Finish().ok());
  const std::string llmc = dir_.File("b.idx");
  WriteText(llmc, LlmcHeaderBytes({.tokens = 2}) + Packed({9, 50256}, 2));
  const std::string megatron = Megatron(8, Packed({4, 5, 6, 1, 2, 3}, 2), 2);

  EXPECT_EQ(TokenFile::Open(ours)->layout().format, "troupe");
  const auto open = TokenFile::Open(llmc);
  ASSERT_TRUE(open.ok()) << open.status().ToString();
  EXPECT_EQ(open->layout().format, "llm.c");
  EXPECT_EQ(ReadAll(*open), (std::vector<int32_t>{9, 50256}));
  for (const char* end : {"", ".bin", ".idx"}) {
    EXPECT_EQ(TokenFile::Open(megatron + end)->layout().format, "megatron");
  }
  WriteText(dir_.File("text"), "Once upon a time");
  EXPECT_TRUE(Fails(
      TokenFile::Open(dir_.File("text")).status(), absl::StatusCode::kDataLoss,
      {dir_.File("text"), "no token file", "TROUPETK", "llm.c", "MMIDIDX"}));
  EXPECT_TRUE(Fails(TokenFile::Open(dir_.File("none")).status(),
                    absl::StatusCode::kNotFound, {dir_.File("none")}));
}

TEST_F(TokenFileTest, ReadsAcrossRuns) {
  const auto file =
      TokenFile::Open(Megatron(4, Packed({4, 5, 6, 1, 2, 3}, 4), 4));
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  const std::vector<int32_t> all = {1, 2, 3, 4, 5, 6};
  EXPECT_EQ(ReadAll(*file), all);
  for (uint64_t first = 0; first <= 6; ++first) {
    for (uint64_t count = 0; first + count <= 6; ++count) {
      std::vector<int32_t> ids(count);
      ASSERT_TRUE(file->Read(first, count, ids.data()).ok());
      EXPECT_EQ(ids, std::vector<int32_t>(all.begin() + first,
                                          all.begin() + first + count));
    }
  }
  int32_t ids[7];
  EXPECT_TRUE(absl::IsOutOfRange(file->Read(0, 7, ids)));
  EXPECT_TRUE(absl::IsOutOfRange(file->Read(UINT64_MAX, 2, ids)));
  EXPECT_TRUE(file->Verify().ok());
}

TEST_F(TokenFileTest, IdsOutsideTheVocabularyAreNamedWithFileAndOffset) {
  struct Case {
    int code;
    int64_t bytes;
    int64_t bad;
  };
  for (const Case& c : std::vector<Case>{{8, 2, 100},
                                         {2, 1, -1},
                                         {3, 2, -32768},
                                         {4, 4, -1},
                                         {5, 8, int64_t{1} << 40},
                                         {5, 8, INT64_MIN}}) {
    // The bad one is the stream's token 5, the .bin's third.
    const std::string path =
        Megatron(c.code, Packed({4, 5, c.bad, 1, 2, 3}, c.bytes), c.bytes);
    const auto file = TokenFile::Open(path, {.vocab_size = 100});
    ASSERT_TRUE(file.ok()) << file.status().ToString();
    int32_t ids[6];
    EXPECT_TRUE(file->Read(0, 5, ids).ok());
    for (const absl::Status& bad : {file->Read(4, 2, ids), file->Verify()}) {
      EXPECT_TRUE(Fails(bad, absl::StatusCode::kDataLoss,
                        {absl::StrCat(path, ".bin: offset ", 2 * c.bytes,
                                      ": token 5 is ", c.bad),
                         "the vocabulary has 100"}));
    }
  }
}

TEST_F(TokenFileTest, ReadsAcrossThePiecesOfItsReads) {
  std::vector<int64_t> many(20'000);
  for (size_t i = 0; i < many.size(); ++i) many[i] = 7 * i % 1000;
  const std::string path = dir_.File("many");
  WriteText(path, LlmcHeaderBytes({.tokens = 20'000}) + Packed(many, 2));
  const auto file = TokenFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(ReadAll(*file), std::vector<int32_t>(many.begin(), many.end()));
}

// The same tokens at another place are the same; any others are not.
TEST_F(TokenFileTest, IsKnownByItsTokens) {
  std::vector<int64_t> many(400'000);
  for (size_t i = 0; i < many.size(); ++i) many[i] = 7 * i % 1000;
  const auto identity = [&](const std::string& name) {
    const std::string path = dir_.File(name);
    WriteText(path, LlmcHeaderBytes({.tokens = int64_t(many.size())}) +
                        Packed(many, 2));
    const auto file = TokenFile::Open(path);
    CHECK_OK(file.status());
    return file->identity();
  };
  const std::string first = identity("a");
  EXPECT_EQ(identity("b"), first);
  EXPECT_EQ(first.find("llm.c, 400000 tokens of 2 bytes, digest "), 0u)
      << first;
  ++many.front();
  const std::string second = identity("a");
  EXPECT_NE(second, first);
  ++many.back();
  const std::string third = identity("a");
  EXPECT_NE(third, second);
  many.resize(200'000);
  EXPECT_NE(identity("a"), third);

  const auto runs = [&](const std::vector<int64_t>& ids) {
    return TokenFile::Open(Megatron(4, Packed(ids, 4), 4))->identity();
  };
  EXPECT_EQ(runs({4, 5, 6, 1, 2, 3}), runs({4, 5, 6, 1, 2, 3}));
  EXPECT_NE(runs({4, 5, 6, 1, 2, 3}), runs({4, 5, 7, 1, 2, 3}));
}

TEST_F(TokenFileTest, WithoutABoundAnyIdThatAnInt32HoldsIsRead) {
  const std::string path =
      Megatron(5, Packed({4, 5, INT32_MAX, 1, 2, int64_t{1} << 31}, 8), 8);
  const auto file = TokenFile::Open(path);
  int32_t ids[6];
  EXPECT_TRUE(file->Read(3, 3, ids).ok());
  EXPECT_EQ(ids[2], INT32_MAX);
  EXPECT_TRUE(Fails(file->Read(0, 6, ids), absl::StatusCode::kDataLoss,
                    {"offset 40: token 2 is 2147483648"}));
}

}  // namespace
}  // namespace troupe
