#include "storage/dataset/sentencepiece/piece_trie.h"

#include <utility>

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(PieceTrie, FindsAllThatBeginHere) {
  PieceTrie trie;
  trie.Add("a", 1);
  trie.Add("abc", 2);
  trie.Add("b", 3);
  trie.Add("abc", 4);  // the first stays
  std::vector<std::pair<int32_t, size_t>> found;
  trie.ForEachPrefix(
      "abcd", [&](int32_t id, size_t bytes) { found.emplace_back(id, bytes); });
  EXPECT_EQ(found, (std::vector<std::pair<int32_t, size_t>>{{1, 1}, {2, 3}}));
  EXPECT_EQ(trie.LongestPrefix("abx"), 1u);
  EXPECT_EQ(trie.LongestPrefix("abc"), 3u);
  EXPECT_EQ(trie.LongestPrefix("xa"), 0u);
  EXPECT_EQ(trie.LongestPrefix(""), 0u);
}

}  // namespace
}  // namespace troupe
