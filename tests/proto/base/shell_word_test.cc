#include "proto/base/shell_word.h"

#include <array>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

// What a shell makes of it.
std::string Echo(const std::string& word) {
  FILE* const shell =
      popen(absl::StrCat("printf %s ", ShellWord(word)).c_str(), "r");
  std::string text;
  std::array<char, 256> piece;
  for (size_t n; (n = fread(piece.data(), 1, piece.size(), shell)) > 0;) {
    text.append(piece.data(), n);
  }
  EXPECT_EQ(pclose(shell), 0) << word;
  return text;
}

TEST(ShellWord, QuotesWhatNeedsIt) {
  EXPECT_EQ(ShellWord("/tmp/a-b_c.d/1+2"), "/tmp/a-b_c.d/1+2");
  EXPECT_EQ(ShellWord("127.0.0.1:4321"), "127.0.0.1:4321");
  EXPECT_EQ(ShellWord("/tmp/my cluster"), "'/tmp/my cluster'");
  EXPECT_EQ(ShellWord(""), "''");
  EXPECT_EQ(ShellWord("it's"), R"('it'\''s')");
}

TEST(ShellWord, IsReadBackAsItWas) {
  for (const char* word :
       {"/tmp/x", "a b", "it's", "$HOME", "~/x", "a;b", "a*", "`id`", "a\\b",
        "\"", "''", "#x", "a\tb\nc", "\xc3\xa9t\xc3\xa9", "!x", "{a,b}"}) {
    EXPECT_EQ(Echo(word), word);
  }
}

TEST(YamlWord, QuotesWhatNeedsIt) {
  EXPECT_EQ(YamlWord("/tmp/x"), "/tmp/x");
  EXPECT_EQ(YamlWord("/tmp/a, b: {c}"), "'/tmp/a, b: {c}'");
  EXPECT_EQ(YamlWord("it's"), "'it''s'");
}

}  // namespace
}  // namespace troupe
