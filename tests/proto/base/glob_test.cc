#include "proto/base/glob.h"

#include <string>

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(Glob, MatchesWholeTexts) {
  EXPECT_TRUE(GlobMatches("h.0.bias", "h.0.bias"));
  EXPECT_FALSE(GlobMatches("h.0.bias", "h.0.bias2"));
  EXPECT_FALSE(GlobMatches("0.bias", "h.0.bias"));
  EXPECT_TRUE(GlobMatches("", ""));
  EXPECT_FALSE(GlobMatches("", "a"));
}

TEST(Glob, StarsStandForAnyCharactersAndNone) {
  EXPECT_TRUE(GlobMatches("*bias", "h.0.bias"));
  EXPECT_TRUE(GlobMatches("*.wte.*", "transformer.wte.weight"));
  EXPECT_TRUE(GlobMatches("**", ""));
  EXPECT_TRUE(GlobMatches("h.*0*", "h.0"));
  EXPECT_FALSE(GlobMatches("*.wte.*", "wte.weight"));
  // The first place that fits is not the one that counts.
  EXPECT_TRUE(GlobMatches("*ab*ac", "xabyabzac"));
  EXPECT_FALSE(GlobMatches("*ab*ac", "xabyabza"));
}

TEST(Glob, QuestionMarksStandForOneCharacter) {
  EXPECT_TRUE(GlobMatches("h.?.bias", "h.7.bias"));
  EXPECT_FALSE(GlobMatches("h.?.bias", "h.17.bias"));
  EXPECT_FALSE(GlobMatches("a?", "a"));
}

TEST(Glob, TakesNoTimeForPatternsThatAlmostMatch) {
  std::string pattern, text;
  for (int i = 0; i < 1000; ++i) pattern += "*a";
  text.assign(20000, 'a');
  EXPECT_FALSE(GlobMatches(pattern + "b", text));
}

}  // namespace
}  // namespace troupe
