#include "storage/dataset/text_stream.h"

#include <vector>

#include "gtest/gtest.h"
#include "storage/dataset/bytes_tokenizer.h"
#include "storage/dataset/sentencepiece/tokenizer.h"
#include "tests/storage/dataset/sentencepiece/library.h"

namespace troupe {
namespace {

TEST(TextStream, HoldsBackWhatIsNoCharacterYet) {
  const auto tokenizer = MakeBytesTokenizer();
  TextStream stream(*tokenizer);
  std::vector<std::string> pieces;
  for (const char byte : std::string("a\xe6\x9d\xb1\xff\xc3")) {
    pieces.push_back(*stream.Add(static_cast<unsigned char>(byte)));
  }
  EXPECT_EQ(pieces, (std::vector<std::string>{"a", "", "", "\xe6\x9d\xb1",
                                              "\xff", ""}));
  EXPECT_EQ(stream.Finish(), "\xc3");
  EXPECT_EQ(stream.Finish(), "");
  EXPECT_FALSE(stream.Add(256).ok());
}

TEST(TextStream, KeepsTheSpacesBetweenPieces) {
  const auto tokenizer =
      MakeSentencePieceTokenizer(SmallModel(LikeLlama("unigram")));
  ASSERT_TRUE(tokenizer.ok());
  const std::string prompt = "The quick fox";
  const std::string rest = " jumps over \xf0\x9f\xa6\x8a  the lazy dogs.";
  std::vector<int32_t> before;
  std::vector<int32_t> all;
  ASSERT_TRUE((*tokenizer)->Encode(prompt, before).ok());
  ASSERT_TRUE((*tokenizer)->Encode(prompt + rest, all).ok());
  TextStream stream(**tokenizer);
  std::string text;
  for (size_t i = before.size(); i < all.size(); ++i) {
    text += *stream.Add(all[i]);
  }
  EXPECT_EQ(text, rest);
  EXPECT_EQ(stream.Finish(), "");
}

}  // namespace
}  // namespace troupe
