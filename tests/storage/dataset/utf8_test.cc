#include "storage/dataset/utf8.h"

#include <string>
#include <utility>

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(Utf8, CharactersOfEveryLength) {
  EXPECT_EQ(CharacterBytes("a\xc3\xa4"), 1u);
  EXPECT_EQ(CharacterBytes("\xc3\xa4"), 2u);
  EXPECT_EQ(CharacterBytes("\xe6\x9d\xb1"), 3u);
  EXPECT_EQ(CharacterBytes("\xf0\x9f\xa6\x8a"), 4u);
  EXPECT_EQ(CharacterBytes("\xed\x9f\xbf"), 3u);      // U+D7FF
  EXPECT_EQ(CharacterBytes("\xf4\x8f\xbf\xbf"), 4u);  // U+10FFFF
}

TEST(Utf8, WhatIsNoCharacter) {
  for (const char* text :
       {"", "\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80",
        "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff",
        "\xc3", "\xe6\x9d", "\xf0\x9f\xa6", "\xc3\x41"}) {
    EXPECT_EQ(CharacterBytes(text), 0u) << text;
  }
}

TEST(Utf8, OnlyWhatMayBecomeACharacterWaits) {
  const std::pair<const char*, size_t> cases[] = {{"", 0},
                                                  {"a", 0},
                                                  {"a\xc3", 1},
                                                  {"\xc3\xa4", 0},
                                                  {"\xe6\x9d", 2},
                                                  {"\xe6\x9d\xb1", 0},
                                                  {"\xf0\x9f\xa6", 3},
                                                  {"\xf0\x9f\xa6\x8a", 0},
                                                  {"\x80", 0},
                                                  {"\xff", 0},
                                                  {"\x80\x80\x80\x80", 0}};
  for (const auto& [text, bytes] : cases) {
    EXPECT_EQ(UnfinishedBytes(text), bytes) << text;
  }
}

}  // namespace
}  // namespace troupe
