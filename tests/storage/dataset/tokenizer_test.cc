#include "storage/dataset/tokenizer.h"

#include "gtest/gtest.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

TEST(Tokenizer, BytesGoThereAndBack) {
  const auto tokenizer = MakeTokenizer("bytes");
  ASSERT_TRUE(tokenizer.ok());
  EXPECT_EQ((*tokenizer)->name(), "bytes");
  EXPECT_EQ((*tokenizer)->vocab_size(), 256u);
  std::string all;
  for (int b = 0; b < 256; ++b) all.push_back(static_cast<char>(b));
  std::vector<int32_t> ids;
  ASSERT_TRUE((*tokenizer)->Encode("a", ids).ok());
  ASSERT_TRUE((*tokenizer)->Encode(all, ids).ok());
  ASSERT_EQ(ids.size(), 257u);
  EXPECT_EQ(ids[0], 'a');
  for (int b = 0; b < 256; ++b) EXPECT_EQ(ids[b + 1], b);
  EXPECT_EQ(*(*tokenizer)->Decode(ids), "a" + all);
}

TEST(Tokenizer, RefusesWhatItDoesNotKnow) {
  EXPECT_TRUE(Fails(MakeTokenizer("gpt2").status(),
                    absl::StatusCode::kInvalidArgument,
                    {"\"gpt2\"; use bytes"}));
  const auto tokenizer = MakeTokenizer("bytes");
  EXPECT_TRUE(Fails((*tokenizer)->Decode({1, 256}).status(),
                    absl::StatusCode::kInvalidArgument, {"id 256"}));
  EXPECT_FALSE((*tokenizer)->Decode({-1}).ok());
}

}  // namespace
}  // namespace troupe
