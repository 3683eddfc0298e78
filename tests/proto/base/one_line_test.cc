#include "proto/base/one_line.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(OneLine, LeavesTextAsItIs) {
  for (const char* text : {"", "plain", "größer, 大きい", "a\\nb"}) {
    EXPECT_EQ(OneLine(text, 100), text);
    EXPECT_TRUE(IsOneLine(text, 100));
  }
}

TEST(OneLine, EscapesWhatIsNoText) {
  EXPECT_EQ(OneLine("a\nb\tc\r\x1b[2J\x7f", 100), "a\\nb\\tc\\r\\x1b[2J\\x7f");
  EXPECT_EQ(OneLine("\xc2\x9b"
                    "31m",
                    100),
            "\\xc2\\x9b31m")
      << "U+009B";
  EXPECT_FALSE(IsOneLine("a\n", 100));
  EXPECT_FALSE(IsOneLine("\xc2\x85", 100));
}

TEST(OneLine, CutsBetweenCharactersAndSaysSo) {
  EXPECT_EQ(OneLine("abcdef", 4), "abcd... (6 bytes)");
  EXPECT_EQ(OneLine("größer", 3), "gr... (8 bytes)");
  EXPECT_EQ(OneLine("\n\n\n", 5), "\\n\\n... (3 bytes)");
  EXPECT_FALSE(IsOneLine("abcdef", 5));
  const std::string once = OneLine(std::string(100, '\n'), 40);
  EXPECT_EQ(OneLine(once, 80), once) << "escaped once";
}

}  // namespace
}  // namespace troupe
