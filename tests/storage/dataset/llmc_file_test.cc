#include "storage/dataset/llmc_file.h"

#include "gtest/gtest.h"
#include "tests/storage/dataset/foreign_files.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

class LlmcFileTest : public ::testing::Test {
 protected:
  absl::StatusOr<TokenLayout> Read(const std::string& bytes) {
    WriteText(path_, bytes);
    EXPECT_TRUE(IsLlmcFile(path_));
    return ReadLlmcFile(path_);
  }

  TempDir dir_;
  const std::string path_ = dir_.File("train.bin");
};

TEST_F(LlmcFileTest, ReadsGpt2AndLlama3) {
  const auto gpt2 = Read(LlmcHeaderBytes({.tokens = 2}) + "abcd");
  ASSERT_TRUE(gpt2.ok()) << gpt2.status().ToString();
  EXPECT_EQ(gpt2->token_count, 2u);
  EXPECT_EQ(gpt2->type.bytes, 2u);
  ASSERT_EQ(gpt2->runs.size(), 1u);
  EXPECT_EQ(gpt2->runs[0].offset, 1024u);
  const auto llama = Read(
      LlmcHeaderBytes({.magic = 20240801, .version = 7, .tokens = 1}) + "abcd");
  ASSERT_TRUE(llama.ok()) << llama.status().ToString();
  EXPECT_EQ(llama->type.bytes, 4u);
  EXPECT_EQ(Read(LlmcHeaderBytes({}))->runs.size(), 0u);
}

TEST_F(LlmcFileTest, EveryTruncationIsFound) {
  const std::string whole = LlmcHeaderBytes({.tokens = 3}) + "abcdef";
  for (size_t bytes = 4; bytes < whole.size(); ++bytes) {
    EXPECT_TRUE(Fails(Read(whole.substr(0, bytes)).status(),
                      absl::StatusCode::kDataLoss, {path_, "offset"}))
        << bytes;
  }
  EXPECT_TRUE(Fails(Read(whole + "x").status(), absl::StatusCode::kDataLoss,
                    {"offset 1030", "something follows"}));
}

TEST_F(LlmcFileTest, HeadersThatCannotBeAreRefused) {
  constexpr auto kLoss = absl::StatusCode::kDataLoss;
  EXPECT_TRUE(Fails(Read(LlmcHeaderBytes({.version = 7})).status(), kLoss,
                    {"offset 4: version 7"}));
  EXPECT_TRUE(Fails(Read(LlmcHeaderBytes({.tokens = -1})).status(), kLoss,
                    {"offset 8: -1 tokens"}));
}

TEST_F(LlmcFileTest, OthersAreNotRecognized) {
  WriteText(path_, std::string(2000, 'a'));
  EXPECT_FALSE(IsLlmcFile(path_));
  WriteText(path_, "");
  EXPECT_FALSE(IsLlmcFile(path_));
  // Its files of multiple-choice questions.
  WriteText(path_, LlmcHeaderBytes({.magic = 20240522}));
  EXPECT_FALSE(IsLlmcFile(path_));
}

}  // namespace
}  // namespace troupe
