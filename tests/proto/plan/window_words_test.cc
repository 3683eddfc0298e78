#include "proto/plan/window_words.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(WindowWords, AreFoundAgain) {
  for (const int64_t window : {int64_t{0}, int64_t{12}, int64_t{1} << 40}) {
    EXPECT_EQ(FirstWindowIn(absl::StrCat("job 7 failed: loss nan (",
                                         FirstWindowWords(window), "); look")),
              window);
  }
  for (const char* const message :
       {"", "loss nan", "the first is window ", "the first is window 12",
        "the first is window x, counted from 0",
        "the first is window -1, counted from 0",
        "the first is window 99999999999999999999, counted from 0"}) {
    EXPECT_FALSE(FirstWindowIn(message).has_value()) << message;
  }
}

}  // namespace
}  // namespace troupe
