// tokenizer_test compares with the library on whole models.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "storage/dataset/sentencepiece/segmenter.h"

namespace troupe {
namespace {

SentencePieceModel Model() {
  return {.pieces = {{"<unk>", 0, PieceType::kUnknown},
                     {"a", -1},
                     {"b", -2},
                     {"ab", -2.5},
                     {"ba", -1.5},
                     {"bab", -9, PieceType::kUserDefined},
                     {"aa", 0, PieceType::kUnused}},
          .unknown_id = 0};
}

std::vector<int32_t> Ids(absl::string_view text) {
  const SentencePieceModel model = Model();
  std::vector<int32_t> ids;
  for (const TextSegment& s : MakeUnigramSegmenter(model)->Cut(text)) {
    ids.push_back(s.id);
  }
  return ids;
}

TEST(Unigram, TakesTheBestSum) {
  EXPECT_EQ(Ids("ab"), (std::vector<int32_t>{3}));      // -2.5 beats -3
  EXPECT_EQ(Ids("aba"), (std::vector<int32_t>{1, 4}));  // a ba beats ab a
  EXPECT_TRUE(Ids("").empty());
}

// A sum over all of the text, in float, has no digits left for the difference.
TEST(Unigram, ACloseChoiceIsTheSameWhereverItStands) {
  const SentencePieceModel model = {
      .pieces = {{"<unk>", 0, PieceType::kUnknown},
                 {"a", -1},
                 {"b", -2},
                 {"ab", std::nextafter(-3.0f, -4.0f)},  // less than a b
                 {"x", -20}},
      .unknown_id = 0};
  std::string text;
  std::vector<int32_t> ids;
  for (int i = 0; i < 100'000; ++i) {
    text += "abx";
    ids.insert(ids.end(), {1, 2, 4});
  }
  std::vector<int32_t> cut;
  for (const TextSegment& s : MakeUnigramSegmenter(model)->Cut(text)) {
    cut.push_back(s.id);
  }
  ASSERT_EQ(cut.size(), ids.size());
  EXPECT_EQ(std::mismatch(cut.begin(), cut.end(), ids.begin()).first,
            cut.end());
}

TEST(Unigram, UserDefinedAlwaysUnusedNever) {
  EXPECT_EQ(Ids("abab"), (std::vector<int32_t>{1, 5}));
  EXPECT_EQ(Ids("aa"), (std::vector<int32_t>{1, 1}));
}

TEST(Unigram, WhatItDoesNotKnowIsUnknown) {
  const SentencePieceModel model = Model();
  const auto segments = MakeUnigramSegmenter(model)->Cut("a\xe6\x9d\xb1x\xff");
  ASSERT_EQ(segments.size(), 4u);
  EXPECT_EQ(segments[1].text, "\xe6\x9d\xb1");
  EXPECT_EQ(segments[1].id, 0);
  EXPECT_EQ(segments[3].text, "\xff");
}

}  // namespace
}  // namespace troupe
