#include "storage/dataset/text_sample.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

TEST(TextSample, AShortTextIsItsOwnSample) {
  TempDir dir;
  WriteText(dir.File("t"), "one\ntwo");
  EXPECT_EQ(*SampleText(dir.File("t"), {.bytes_max = 7}), "one\ntwo");
  EXPECT_TRUE(
      absl::IsNotFound(SampleText(dir.File("no"), {.bytes_max = 7}).status()));
}

TEST(TextSample, ALongOneGivesWholeLinesFromBeginningToEnd) {
  TempDir dir;
  std::string text;
  for (int i = 10'000; i < 20'000; ++i) absl::StrAppend(&text, i, "\n");
  WriteText(dir.File("t"), text);
  const auto sample =
      SampleText(dir.File("t"), {.bytes_max = 3000, .piece_bytes = 100});
  ASSERT_TRUE(sample.ok());
  EXPECT_LE(sample->size(), 3000u);
  EXPECT_GT(sample->size(), 2500u);
  int before = 0;
  for (absl::string_view line :
       absl::StrSplit(*sample, '\n', absl::SkipEmpty())) {
    int number = 0;
    ASSERT_EQ(line.size(), 5u);
    ASSERT_TRUE(absl::SimpleAtoi(line, &number));
    EXPECT_LT(before, number);
    before = number;
  }
  EXPECT_EQ(sample->substr(0, 5), "10000");
  EXPECT_EQ(before, 19'999);
}

}  // namespace
}  // namespace troupe
