#include "storage/dataset/bytes_tokenizer.h"

#include "gtest/gtest.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

TEST(BytesTokenizer, GoesThereAndBack) {
  const auto tokenizer = MakeBytesTokenizer();
  EXPECT_EQ(tokenizer->name(), "bytes");
  EXPECT_EQ(tokenizer->vocab_size(), 256u);
  EXPECT_FALSE(tokenizer->eos_id().has_value());
  std::string all;
  for (int b = 0; b < 256; ++b) all.push_back(static_cast<char>(b));
  std::vector<int32_t> ids;
  ASSERT_TRUE(tokenizer->Encode("a", ids).ok());
  ASSERT_TRUE(tokenizer->EncodeLater(all, ids).ok());
  ASSERT_EQ(ids.size(), 257u);
  EXPECT_EQ(ids[0], 'a');
  for (int b = 0; b < 256; ++b) EXPECT_EQ(ids[b + 1], b);
  EXPECT_EQ(*tokenizer->Decode(ids), "a" + all);
  size_t searched = 0;
  EXPECT_EQ(tokenizer->CutPoint(all, searched), 256u);
}

TEST(BytesTokenizer, RefusesOtherIds) {
  const auto tokenizer = MakeBytesTokenizer();
  EXPECT_TRUE(Fails(tokenizer->Decode({1, 256}).status(),
                    absl::StatusCode::kInvalidArgument, {"id 256"}));
  EXPECT_FALSE(tokenizer->TokenText(-1).ok());
}

}  // namespace
}  // namespace troupe
