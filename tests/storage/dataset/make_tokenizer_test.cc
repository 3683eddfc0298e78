#include "storage/dataset/make_tokenizer.h"

#include "gtest/gtest.h"
#include "storage/dataset/sentencepiece/tokenizer.h"
#include "tests/storage/dataset/sentencepiece/library.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

TEST(MakeTokenizer, FindsThemByName) {
  EXPECT_EQ((*MakeTokenizer("bytes"))->name(), "bytes");
  const std::string model = SmallModel(LikeLlama("bpe"));
  const std::string name = (*MakeSentencePieceTokenizer(model))->name();
  EXPECT_EQ((*MakeTokenizer(name, model))->name(), name);
  for (const char* unknown : {"gpt2", "", "byte", "bytes "}) {
    EXPECT_TRUE(Fails(MakeTokenizer(unknown).status(),
                      absl::StatusCode::kInvalidArgument,
                      {"use bytes, sentencepiece"}));
  }
}

TEST(MakeTokenizer, SaysWhenTheModelIsMissingOrAnother) {
  TempDir dir;
  const std::string tokens = dir.File("t");
  const std::string name = "sentencepiece:00000001";
  EXPECT_TRUE(Fails(MakeTokenizer(name).status(), absl::StatusCode::kNotFound,
                    {name, "missing"}));
  EXPECT_TRUE(Fails(LoadTokenizer(name, tokens).status(),
                    absl::StatusCode::kNotFound,
                    {tokens + ".model: is missing", name}));
  const std::string model = SmallModel(LikeLlama("bpe"));
  ASSERT_TRUE(WriteTokenizerModel(tokens, model).ok());
  const std::string right = (*MakeSentencePieceTokenizer(model))->name();
  EXPECT_TRUE(Fails(LoadTokenizer(name, tokens).status(),
                    absl::StatusCode::kFailedPrecondition,
                    {tokens + ".model", name, right}));
  EXPECT_EQ((*LoadTokenizer(right, tokens))->name(), right);
  EXPECT_EQ(*ReadTokenizerModel(TokenizerModelPath(tokens)), model);
  EXPECT_EQ((*LoadTokenizer("bytes", tokens))->name(), "bytes");
}

}  // namespace
}  // namespace troupe
