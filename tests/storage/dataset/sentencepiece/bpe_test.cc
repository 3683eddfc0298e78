// tokenizer_test compares with the library on whole models.
#include "gtest/gtest.h"
#include "storage/dataset/sentencepiece/segmenter.h"

namespace troupe {
namespace {

std::vector<std::string> Pieces(const SentencePieceModel& model,
                                absl::string_view text) {
  PieceTrie user_defined;
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    if (model.pieces[id].type == PieceType::kUserDefined) {
      user_defined.Add(model.pieces[id].text, static_cast<int32_t>(id));
    }
  }
  std::vector<std::string> pieces;
  for (const TextSegment& s :
       MakeBpeSegmenter(model, user_defined)->Cut(text)) {
    pieces.push_back(std::string(s.text));
    EXPECT_EQ(s.text == "x", s.id == model.unknown_id);
  }
  return pieces;
}

using Texts = std::vector<std::string>;

SentencePieceModel Model() {
  return {.pieces = {{"<unk>", 0, PieceType::kUnknown},
                     {"a", -9},
                     {"b", -9},
                     {"ab", -2},
                     {"bb", -1},
                     {"aa", -2},
                     {"abb", -3}},
          .unknown_id = 0};
}

TEST(Bpe, MergesTheBestFirstAndTheLeftmostOfEquals) {
  EXPECT_EQ(Pieces(Model(), "abb"), (Texts{"abb"}));  // a bb, then both
  EXPECT_EQ(Pieces(Model(), "bbb"), (Texts{"bb", "b"}));
  EXPECT_EQ(Pieces(Model(), "aab"), (Texts{"aa", "b"}));
  EXPECT_EQ(Pieces(Model(), "aaa"), (Texts{"aa", "a"}));
  EXPECT_EQ(Pieces(Model(), "axab"), (Texts{"a", "x", "ab"}));
  EXPECT_TRUE(Pieces(Model(), "").empty());
}

TEST(Bpe, UserDefinedPiecesStayWhole) {
  SentencePieceModel model = Model();
  model.pieces.push_back({"ba", 0, PieceType::kUserDefined});
  EXPECT_EQ(Pieces(model, "abab"), (Texts{"a", "ba", "b"}));
}

TEST(Bpe, UnusedPiecesComeApartAgain) {
  SentencePieceModel model = Model();
  model.pieces[4].type = PieceType::kUnused;
  EXPECT_EQ(Pieces(model, "bb"), (Texts{"b", "b"}));
}

}  // namespace
}  // namespace troupe
